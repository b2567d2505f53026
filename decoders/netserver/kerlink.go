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
	// Read the payload in the encoding that the body names, hex without.
	if payload := d.Value("payload"); isPresent(payload) {
		decode := hex.DecodeString
		if strings.EqualFold(d.Text("encodingType"), "BASE64") {
			decode = func(s string) ([]byte, error) { return base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "=")) }
		}
		b, err := decode(payload.String())
		switch {
		case err != nil || payload.Kind != jsonbody.String:
			d.Refuse("payload", "is not in the encoding that encodingType names, hex by default")
		case len(b) > 0:
			f.Payload = b
		}
	}
	f.Gateways = d.Gateways("gwInfo", func(d document) decoders.Gateway {
		g := d.reception("gwEui")
		g.Position = d.Place("latitude", "longitude")
		return g
	})
	f.NetworkTime = cmp.Or(d.Time("recvTime"), d.Time("gwRecvTime"))
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
