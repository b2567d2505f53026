package netserver

import (
	"cmp"

	"github.com/penstock/penstock/decoders"
)

// readNetmoreFrame parses an item of the lists that Netmore posts
// (netmoregroup/netmore-mqtt-sample). Items whose messageType is not payload
// are discarded.
func readNetmoreFrame(d document, f *decoders.Frame) {
	if kind := d.Text("messageType"); kind != "" && kind != "payload" {
		return
	}
	f.Kind = decoders.Uplink
	d.DevEUI(f, "devEui")
	f.Name = d.Text("deviceName")
	f.NetworkTime = d.Time("timestamp")
	f.Payload = d.Hex("payload")
	f.FCnt, f.HasFCnt = d.FCnt("fCntUp")
	f.FPort, f.HasFPort = d.FPort("fPort")
	f.Battery = d.Percent("batteryLevel")
	f.Position = d.Place("latitude", "longitude")
	f.Gateways = d.As("gateways").Gateways("gateways|rxInfo", func(d document) decoders.Gateway {
		g := d.reception("gatewayIdentifier")
		g.ID = cmp.Or(d.As("gateways.gwEui").Text("gwEui|gatewayId"), g.ID)
		return g
	})
	setBestGateway(f, d.reception("gatewayIdentifier"))
	f.DedupID = timeID(f) // milliseconds suffice if there is no counter
}
