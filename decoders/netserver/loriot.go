package netserver

import (
	"cmp"
	"strconv"

	"github.com/penstock/penstock/decoders"
)

// parseCRA parses the envelope of České Radiokomunikace, whose data is a LORIOT message in a
// string.
func parseCRA(p Post) ([]decoders.Frame, error) {
	d, err := readDocument(p.Body)
	if err != nil {
		return nil, err
	}
	frames, err := eachFrame(CRA, &p, []byte(d.Value("data").String()), readLoriotFrame)
	if isSyntax(err) {
		err = &decoders.Error{Format: string(CRA), Field: "data", Offset: -1, Reason: "is not valid JSON: " + err.Error()}
	}
	return frames, err
}

// readLoriotFrame parses LORIOT's messages (docs.loriot.io, Uplink Data Message and
// Gateway Information): rx is a frame, gw the same frame later with
// all its receptions, txd a downlink that was sent. Other commands are
// discarded. An encdata is ciphertext, because LORIOT does not have the application's key.
func readLoriotFrame(d document, f *decoders.Frame) {
	f.NetworkTime = d.Time("ts")
	f.FCnt, f.HasFCnt = d.FCnt("fcnt")
	f.FPort, f.HasFPort = d.FPort("port")
	f.Payload = d.Hex("data")
	if b := d.Hex("encdata"); b != nil {
		f.Payload, f.Encrypted = b, true
	}
	f.Battery = d.LoRaBattery("bat")
	f.Gateways = d.Gateways("gws", func(d document) decoders.Gateway {
		g := d.reception("gweui")
		g.Time, g.Position = cmp.Or(d.Time("time"), d.Time("ts")), d.Place("lat", "lon")
		return g
	})
	// An rx has RSSI and SNR without a gateway.
	if rssi, snr := d.Number("rssi"), d.Number("snr"); len(f.Gateways) == 0 && (rssi != nil || snr != nil) {
		f.Gateways = []decoders.Gateway{{RSSI: rssi, SNR: snr}}
	}
	// Other commands have no kind, so their frames are discarded.
	switch d.Text("cmd") {
	case "rx":
		f.Kind, f.Extensible = decoders.Uplink, true
	case "gw":
		f.Kind, f.Supplement = decoders.Uplink, true
	case "txd":
		f.Kind, f.Text = decoders.Downlink, "sent"
	default:
		return
	}
	// Keep an identifier that is not a devEUI, because some installations prefix the EUI.
	d.Device(f, "EUI", d.Text("EUI"))
	// Identify the frame by values that its rx and its gw have in common: the network's
	// sequence number, the counter and the port, which may recur after the device restarts, or
	// the time.
	seqno, hasSeqno := d.Int("seqno", 0, 1<<53)
	switch {
	case f.Kind != decoders.Uplink:
	case hasSeqno:
		f.DedupID = strconv.FormatInt(f.FCnt, 10) + ":" + strconv.FormatInt(seqno, 10) + ":" + strconv.Itoa(f.FPort)
		f.DedupSpan = repeatSpan
	default:
		f.DedupID = timeID(f)
	}
}
