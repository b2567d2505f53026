package netserver

import (
	"cmp"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// readHeliumFrame parses the posts of Helium's Console (docs.helium.com, HTTP
// integration, JSON schema). Its bodies are templates, so numbers may be
// strings and lists may be missing. The downlink_url is a credential and is
// not stored.
func readHeliumFrame(d document, f *decoders.Frame) {
	d.DevEUI(f, "dev_eui")
	f.Kind = decoders.Uplink
	if d.Text("type") == "join" {
		f.Kind = decoders.Join
	}
	f.Name = d.Text("name")
	f.FCnt, f.HasFCnt = d.FCnt("fcnt")
	f.FPort, f.HasFPort = d.FPort("port")
	f.Payload = d.Base64("payload")
	f.Gateways = d.Gateways("hotspots", func(d document) decoders.Gateway {
		g := d.reception("id")
		g.Time, g.Position = d.Time("reported_at"), d.Place("lat", "long")
		return g
	})
	f.NetworkTime = cmp.Or(d.Time("reported_at"), gatewayTime(f.Gateways, time.Time{}))
	// Read the values that the Console's function decoded.
	if d.Kind("decoded.payload") == jsonbody.Object {
		f.Object = d.Object("decoded.payload")
	}
	if s := d.Text("decoded.error"); s != "" {
		d.As("decoded").Warn("decoded.error", s)
	}
	f.DedupID = cmp.Or(d.Text("uuid"), counterID(f))
	if f.DedupID == "" && !f.NetworkTime.IsZero() {
		f.DedupID = strconv.FormatInt(f.NetworkTime.UnixMilli(), 10)
	}
}
