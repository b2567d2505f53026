package netserver

import (
	"cmp"
	"strconv"

	"github.com/penstock/penstock/decoders"
)

// parseCRA opens the envelope of České Radiokomunikace, which carries a LORIOT
// message as a string.
func parseCRA(p Post) ([]decoders.Frame, error) {
	d, err := readDocument(p.Body)
	if err != nil {
		return nil, err
	}
	frames, err := eachFrame(CRA, &p, []byte(d.Value("data").String()), loriotFrame)
	if isSyntax(err) {
		err = &decoders.Error{Format: string(CRA), Field: "data", Offset: -1, Reason: "is not valid JSON: " + err.Error()}
	}
	return frames, err
}

// loriotFrame reads LORIOT's messages (docs.loriot.io, Uplink Data Message and
// Gateway Information): rx is the frame at once, gw the same frame later with
// all its receptions, txd a downlink that was sent. Other commands are passed
// over. An encdata is ciphertext: LORIOT has no key of the application.
func loriotFrame(d document, f *decoders.Frame) {
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
	// An rx names no gateway, only how it was heard.
	if rssi, snr := d.Number("rssi"), d.Number("snr"); len(f.Gateways) == 0 && (rssi != nil || snr != nil) {
		f.Gateways = []decoders.Gateway{{RSSI: rssi, SNR: snr}}
	}
	// Leave a command that is of no interest without a kind.
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
	// Some installations prefix the EUI, so another identifier is kept as it is.
	d.Device(f, "EUI", d.Text("EUI"))
	// The DedupID is the same for the rx and the gw of a frame: the network's sequence
	// number with the counter and the port, which may begin anew with the device, or the
	// time they share.
	seqno, numbered := d.Int("seqno", 0, 1<<53)
	switch {
	case f.Kind != decoders.Uplink:
	case numbered:
		f.DedupID = strconv.FormatInt(f.FCnt, 10) + ":" + strconv.FormatInt(seqno, 10) + ":" + strconv.Itoa(f.FPort)
		f.DedupSpan = repeatSpan
	default:
		f.DedupID = timed(f)
	}
}
