package netserver

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// kerlink reads what Kerlink's Wanesy Management Centre posts: dataUp in any
// of its three levels of detail, of which the lower ones have no radio data.
type kerlink struct {
	envelope
	payloadText jsonbody.Value // kept until its encoding is known
	encoding    string
	gatewayTime time.Time
	down        bool
}

func parseKerlink(p Post) ([]decoders.Frame, error) {
	k := kerlink{envelope: newEnvelope(Kerlink, p.Body)}
	var key []byte
	for ok := k.r.Object(); ok && k.r.Next(&key); {
		k.field(key)
	}
	k.complete()
	return k.finish()
}

func (k *kerlink) field(key []byte) {
	f := k.f
	switch string(key) {
	case "id":
		f.DedupID = k.text("id")
	case "endDevice":
		k.endDevice()
	case "fPort":
		n, ok := k.integer("fPort", 255)
		f.FPort, f.HasFPort = int(n), ok
	case "fCntUp":
		f.FCnt, f.HasFCnt = k.integer("fCntUp", 1<<32-1)
	case "fCntDown":
		k.down = given(k.r.Value())
	case "confirmed":
		f.Confirmed = k.flag()
	case "encrypted":
		f.Encrypted = k.flag()
	case "payload":
		k.payloadText = k.r.Value()
	case "encodingType":
		k.encoding = k.text("encodingType")
	case "recvTime":
		f.NetworkTime = k.instant("recvTime")
	case "gwRecvTime":
		k.gatewayTime = k.instant("gwRecvTime")
	case "ulFrequency":
		f.FrequencyHz = k.frequency("ulFrequency")
	case "dataRate":
		k.dataRate("dataRate")
	case "gwInfo":
		k.gateways(k.gateway)
	default:
		k.r.Skip()
	}
}

func (k *kerlink) endDevice() {
	var key []byte
	for ok := k.r.Object(); ok && k.r.Next(&key); {
		switch string(key) {
		case "devEui":
			k.device("endDevice.devEui")
		case "name":
			k.f.Name = k.text("endDevice.name")
		case "cluster":
			k.cluster()
		default:
			k.r.Skip()
		}
	}
}

func (k *kerlink) cluster() {
	var key []byte
	for ok := k.r.Object(); ok && k.r.Next(&key); {
		if string(key) == "id" {
			k.f.Application = k.text("endDevice.cluster.id")
		} else {
			k.r.Skip()
		}
	}
}

func (k *kerlink) gateway() (g decoders.Gateway) {
	var key []byte
	var lat, lon, alt *float64
	for ok := k.r.Object(); ok && k.r.Next(&key); {
		switch string(key) {
		case "gwEui":
			g.ID = k.text("gwInfo.gwEui")
		case "rssi":
			g.RSSI = k.number("gwInfo.rssi")
		case "snr":
			g.SNR = k.number("gwInfo.snr")
		case "latitude":
			lat = k.coordinate()
		case "longitude":
			lon = k.coordinate()
		case "altitude":
			alt = k.coordinate()
		default:
			k.r.Skip()
		}
	}
	g.Position = place(lat, lon, alt)
	return g
}

// complete takes a body with a counter or a payload for an uplink; whatever
// else Wanesy posts about a device is kept as a downlink or service event.
func (k *kerlink) complete() {
	f := k.f
	k.named("endDevice.devEui")
	switch {
	case f.HasFCnt || given(k.payloadText) && !k.down:
		f.Kind = decoders.Uplink
	case k.down:
		f.Kind, f.Text = decoders.Downlink, "reported"
	default:
		f.Kind = decoders.Service
	}
	f.Payload = k.decode()
	if f.NetworkTime.IsZero() {
		f.NetworkTime = k.gatewayTime
	}
	if f.DedupID == "" && f.HasFCnt && !f.NetworkTime.IsZero() {
		f.DedupID = counted(f.FCnt, f.NetworkTime)
	}
}

// decode reads the payload in the encoding that the body names, hex without.
func (k *kerlink) decode() []byte {
	if !given(k.payloadText) {
		return nil
	}
	var b []byte
	var err error
	s := k.payloadText.String()
	if strings.EqualFold(k.encoding, "BASE64") {
		b, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	} else {
		b, err = hex.DecodeString(s)
	}
	switch {
	case err != nil || k.payloadText.Kind != jsonbody.String:
		k.refuse("payload", "is not in the encoding that encodingType names, hex by default")
		return nil
	case len(b) == 0:
		return nil
	}
	return b
}
