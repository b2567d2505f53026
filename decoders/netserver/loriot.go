package netserver

import (
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// loriot reads LORIOT's messages (docs.loriot.io, Uplink Data Message and
// Gateway Information): rx is the frame at once, gw the same frame later with
// all its receptions, txd a downlink that was sent. Other commands are passed
// over. An encdata is ciphertext: LORIOT has no key of the application.
type loriot struct {
	envelope
	cmd    string
	eui    string
	seqno  int64
	hasSeq bool
	best   decoders.Gateway // rx names no gateway, only how it was heard
}

func parseLORIOT(p Post) ([]decoders.Frame, error) { return readLORIOT(LORIOT, p.Body) }

// parseCRA opens the envelope of České Radiokomunikace, which carries a LORIOT
// message as a string.
func parseCRA(p Post) ([]decoders.Frame, error) {
	r := jsonbody.New(p.Body)
	var key []byte
	var inner string
	for ok := r.Object(); ok && r.Next(&key); {
		if string(key) == "data" {
			inner = r.Value().String()
		} else {
			r.Skip()
		}
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	frames, err := readLORIOT(CRA, []byte(inner))
	if jsonbody.IsSyntax(err) {
		err = &decoders.Error{Format: string(CRA), Field: "data", Offset: -1, Reason: "holds no JSON: " + err.Error()}
	}
	return frames, err
}

func readLORIOT(s Sender, body []byte) ([]decoders.Frame, error) {
	l := loriot{envelope: newEnvelope(s, body)}
	var key []byte
	for ok := l.r.Object(); ok && l.r.Next(&key); {
		l.field(key)
	}
	return l.kept(l.complete())
}

func (l *loriot) field(key []byte) {
	f := l.f
	switch string(key) {
	case "cmd":
		l.cmd = l.text("cmd")
	case "EUI":
		l.eui = l.text("EUI")
	case "ts":
		f.NetworkTime = l.instant("ts")
	case "fcnt":
		f.FCnt, f.HasFCnt = l.integer("fcnt", 1<<32-1)
	case "seqno":
		l.seqno, l.hasSeq = l.integer("seqno", 1<<53)
	case "port":
		n, ok := l.integer("port", 255)
		f.FPort, f.HasFPort = int(n), ok
	case "data":
		if b := l.hex("data"); !f.Encrypted {
			f.Payload = b
		}
	case "encdata":
		l.encrypted()
	case "confirmed":
		f.Confirmed = l.flag()
	case "freq":
		f.FrequencyHz = l.frequency("freq")
	case "dr":
		l.dataRate("dr")
	case "bat":
		f.Battery = l.loraBattery("bat")
	case "rssi":
		l.best.RSSI = l.number("rssi")
	case "snr":
		l.best.SNR = l.number("snr")
	case "gws":
		l.gateways(l.gateway)
	default:
		l.r.Skip()
	}
}

func (l *loriot) encrypted() {
	if b := l.hex("encdata"); b != nil {
		l.f.Payload, l.f.Encrypted = b, true
	}
}

func (l *loriot) gateway() (g decoders.Gateway) {
	var key []byte
	var lat, lon *float64
	var stamp time.Time
	for ok := l.r.Object(); ok && l.r.Next(&key); {
		switch string(key) {
		case "gweui":
			g.ID = l.text("gws.gweui")
		case "rssi":
			g.RSSI = l.number("gws.rssi")
		case "snr":
			g.SNR = l.number("gws.snr")
		case "time":
			g.Time = l.instant("gws.time")
		case "ts":
			stamp = l.instant("gws.ts")
		case "lat":
			lat = l.coordinate()
		case "lon":
			lon = l.coordinate()
		default:
			l.r.Skip()
		}
	}
	if g.Time.IsZero() {
		g.Time = stamp
	}
	g.Position = place(lat, lon, nil)
	return g
}

// complete returns false for a command that is of no interest.
func (l *loriot) complete() bool {
	f := l.f
	switch l.cmd {
	case "rx":
		f.Kind, f.Extensible = decoders.Uplink, true
	case "gw":
		f.Kind, f.Supplement = decoders.Uplink, true
	case "txd":
		f.Kind, f.Text = decoders.Downlink, "sent"
	default:
		return false
	}
	// Some installations prefix the EUI, so what is none is kept as it is.
	f.Identifier, f.IsDevEUI = decoders.NormalizeDevEUI(l.eui)
	if !f.IsDevEUI {
		f.Identifier = l.eui
	}
	l.named("EUI")
	if len(f.Gateways) == 0 && (l.best.RSSI != nil || l.best.SNR != nil) {
		f.Gateways = []decoders.Gateway{l.best}
	}
	l.dedup()
	return true
}

// dedup is the same for the rx and the gw of a frame: the network's sequence
// number with the counter and the port, or the time they share.
func (l *loriot) dedup() {
	f := l.f
	switch {
	case f.Kind != decoders.Uplink:
	case l.hasSeq:
		f.DedupID = strconv.FormatInt(f.FCnt, 10) + ":" + strconv.FormatInt(l.seqno, 10) + ":" + strconv.Itoa(f.FPort)
	case !f.NetworkTime.IsZero():
		f.DedupID = counted(f.FCnt, f.NetworkTime)
	}
}
