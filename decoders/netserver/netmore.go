package netserver

import "github.com/penstock/penstock/decoders"

// parseNetmore reads the lists that Netmore posts
// (netmoregroup/netmore-mqtt-sample). Items whose messageType is not payload
// are passed over.
func parseNetmore(p Post) ([]decoders.Frame, error) { return eachFrame(Netmore, p.Body, netmoreFrame) }

func netmoreFrame(d document, f *decoders.Frame) {
	if kind := d.Text("messageType"); kind != "" && kind != "payload" {
		return
	}
	f.Kind = decoders.Uplink
	d.DevEUI(f, "devEui")
	f.Name = d.Text("deviceName")
	f.Profile.Name = d.Text("sensorType")
	f.NetworkTime = d.Time("timestamp")
	f.Payload = d.Hex("payload")
	f.FCnt, f.HasFCnt = d.FCnt("fCntUp")
	f.FPort, f.HasFPort = d.FPort("fPort")
	f.Battery = d.Percent("batteryLevel")
	f.SpreadingFactor = d.Spreading("spreadingFactor")
	f.FrequencyHz = d.Frequency("freq")
	f.Position = d.Place("latitude", "longitude", "")
	f.Gateways = d.As("gateways").Gateways("gateways|rxInfo", netmoreGateway)
	// The item itself names the best reception.
	best := decoders.Gateway{ID: d.Text("gatewayIdentifier"), RSSI: d.Number("rssi"), SNR: d.Number("snr")}
	if len(f.Gateways) == 0 && (best.ID != "" || best.RSSI != nil) {
		f.Gateways = []decoders.Gateway{best}
	}
	// The time is to the millisecond, enough where no counter is given.
	if !f.NetworkTime.IsZero() {
		f.DedupID = counted(f.FCnt, f.NetworkTime)
	}
}

func netmoreGateway(d document) decoders.Gateway {
	g := decoders.Gateway{
		ID:   d.As("gateways.gwEui").Text("gwEui|gatewayId"),
		RSSI: d.Number("rssi"),
		SNR:  d.Number("snr"),
	}
	if id := d.Text("gatewayIdentifier"); g.ID == "" {
		g.ID = id
	}
	return g
}
