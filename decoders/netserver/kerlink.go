package netserver

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// readKerlinkFrame parses the dataUp messages of Kerlink's Wanesy Management Centre, in
// any of their three levels of detail. Only the highest has radio data.
func readKerlinkFrame(d document, f *decoders.Frame) {
	d.DevEUI(f, "endDevice.devEui")
	f.Name = d.Text("endDevice.name")
	f.FPort, f.HasFPort = d.FPort("fPort")
	f.FCnt, f.HasFCnt = d.FCnt("fCntUp")
	f.Encrypted = d.Flag("encrypted")
	// Decode the payload from the encodingType, which is hex by default.
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
	f.DedupID = cmp.Or(d.Text("id"), counterID(f))
	// A body with fCntUp, or with a payload and without fCntDown, is an uplink. Other posts about
	// a device become downlink or service events.
	isDownlink := d.IsPresent("fCntDown")
	switch {
	case f.HasFCnt || d.IsPresent("payload") && !isDownlink:
		f.Kind = decoders.Uplink
	case isDownlink:
		if d.IsPresent("payload") {
			d.Warn("fCntUp", "is missing, so this is not an uplink")
		}
		f.Kind, f.Text = decoders.Downlink, "reported"
	default:
		f.Kind = decoders.Service
	}
}
