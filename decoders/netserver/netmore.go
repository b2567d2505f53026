package netserver

import "github.com/penstock/penstock/decoders"

// netmore reads the lists that Netmore posts (netmoregroup/netmore-mqtt-sample).
// Items whose messageType is not payload are passed over.
type netmore struct {
	envelope
	messageType string
	best        decoders.Gateway // the reception that the item itself names
	lat, lon    *float64
}

func parseNetmore(p Post) ([]decoders.Frame, error) {
	n := netmore{envelope: newEnvelope(Netmore, p.Body)}
	return n.each(n.item)
}

func (n *netmore) item() bool {
	*n = netmore{envelope: n.envelope}
	n.f.Kind = decoders.Uplink
	var key []byte
	for ok := n.r.Object(); ok && n.r.Next(&key); {
		n.field(key)
	}
	if n.messageType != "" && n.messageType != "payload" {
		n.err = nil
		return false
	}
	n.complete()
	return true
}

func (n *netmore) field(key []byte) {
	f := n.f
	switch string(key) {
	case "devEui":
		n.device("devEui")
	case "deviceName":
		f.Name = n.text("deviceName")
	case "sensorType":
		f.Profile.Name = n.text("sensorType")
	case "messageType":
		n.messageType = n.text("messageType")
	case "timestamp":
		f.NetworkTime = n.instant("timestamp")
	case "payload":
		f.Payload = n.hex("payload")
	case "fCntUp":
		f.FCnt, f.HasFCnt = n.integer("fCntUp", 1<<32-1)
	case "fPort":
		p, ok := n.integer("fPort", 255)
		f.FPort, f.HasFPort = int(p), ok
	case "batteryLevel":
		f.Battery = n.percent("batteryLevel")
	default:
		n.radio(key)
	}
}

func (n *netmore) radio(key []byte) {
	switch string(key) {
	case "rssi":
		n.best.RSSI = n.number("rssi")
	case "snr":
		n.best.SNR = n.number("snr")
	case "gatewayIdentifier":
		n.best.ID = n.text("gatewayIdentifier")
	case "spreadingFactor":
		n.f.SpreadingFactor = n.spreading("spreadingFactor")
	case "freq":
		n.f.FrequencyHz = n.frequency("freq")
	case "gateways", "rxInfo":
		n.gateways(n.gateway)
	case "latitude":
		n.lat = n.coordinate()
	case "longitude":
		n.lon = n.coordinate()
	default:
		n.r.Skip()
	}
}

func (n *netmore) gateway() (g decoders.Gateway) {
	var key []byte
	for ok := n.r.Object(); ok && n.r.Next(&key); {
		switch string(key) {
		case "gwEui", "gatewayId":
			if id := n.text("gateways.gwEui"); id != "" {
				g.ID = id
			}
		case "gatewayIdentifier":
			if id := n.text("gateways.gatewayIdentifier"); g.ID == "" {
				g.ID = id
			}
		case "rssi":
			g.RSSI = n.number("gateways.rssi")
		case "snr":
			g.SNR = n.number("gateways.snr")
		default:
			n.r.Skip()
		}
	}
	return g
}

func (n *netmore) complete() {
	f := n.f
	n.named("devEui")
	f.Position = place(n.lat, n.lon, nil)
	if len(f.Gateways) == 0 && (n.best.ID != "" || n.best.RSSI != nil) {
		f.Gateways = []decoders.Gateway{n.best}
	}
	// The time is to the millisecond, enough where no counter is given.
	if !f.NetworkTime.IsZero() {
		f.DedupID = counted(f.FCnt, f.NetworkTime)
	}
}
