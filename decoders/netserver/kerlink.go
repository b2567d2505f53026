package netserver

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// kerlinkFrame reads what Kerlink's Wanesy Management Centre posts: dataUp in
// any of its three levels of detail, of which the lower ones have no radio data.
func kerlinkFrame(d document, f *decoders.Frame) {
	d.DevEUI(f, "endDevice.devEui")
	f.Name = d.Text("endDevice.name")
	f.FPort, f.HasFPort = d.FPort("fPort")
	f.FCnt, f.HasFCnt = d.FCnt("fCntUp")
	f.Encrypted = d.Flag("encrypted")
	f.Payload = kerlinkPayload(d)
	f.Gateways = d.Gateways("gwInfo", kerlinkGateway)
	f.NetworkTime = firstTime(d.Time("recvTime"), d.Time("gwRecvTime"))
	f.DedupID = cmp.Or(d.Text("id"), counted(f))
	// Take a body with a counter or a payload for an uplink; whatever else Wanesy posts
	// about a device is kept as a downlink or service event.
	down := d.IsPresent("fCntDown")
	switch {
	case f.HasFCnt || d.IsPresent("payload") && !down:
		f.Kind = decoders.Uplink
	case down:
		if d.IsPresent("payload") {
			d.Warn("fCntUp", "is missing, so this is not an uplink")
		}
		f.Kind, f.Text = decoders.Downlink, "reported"
	default:
		f.Kind = decoders.Service
	}
}

func kerlinkGateway(d document) decoders.Gateway {
	return decoders.Gateway{
		ID:       d.Text("gwEui"),
		RSSI:     d.Number("rssi"),
		SNR:      d.Number("snr"),
		Position: d.Place("latitude", "longitude"),
	}
}

// kerlinkPayload is in the encoding that the body names, hex without.
func kerlinkPayload(d document) []byte {
	v, encoding := d.Value("payload"), d.Text("encodingType")
	if !isPresent(v) {
		return nil
	}
	var b []byte
	var err error
	if strings.EqualFold(encoding, "BASE64") {
		b, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(v.String(), "="))
	} else {
		b, err = hex.DecodeString(v.String())
	}
	switch {
	case err != nil || v.Kind != jsonbody.String:
		d.Refuse("payload", "is not in the encoding that encodingType names, hex by default")
		return nil
	case len(b) == 0:
		return nil
	}
	return b
}
