package netserver

import "github.com/penstock/penstock/decoders"

// ttnV2 reads the uplinks of The Things Network's HTTP integration of version
// 2, which is shut down but lives on in simulators and old stacks.
type ttnV2 struct {
	envelope
	serial, appID, devID string
}

func parseTTNv2(p Post) ([]decoders.Frame, error) {
	t := ttnV2{envelope: newEnvelope(TTNv2, p.Body)}
	t.f.Kind = decoders.Uplink
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		t.field(key)
	}
	t.complete()
	return t.finish()
}

func (t *ttnV2) field(key []byte) {
	f := t.f
	switch string(key) {
	case "app_id":
		t.appID = t.text("app_id")
	case "dev_id":
		t.devID = t.text("dev_id")
	case "hardware_serial":
		t.serial = t.text("hardware_serial")
	case "port":
		n, ok := t.integer("port", 255)
		f.FPort, f.HasFPort = int(n), ok
	case "counter":
		f.FCnt, f.HasFCnt = t.integer("counter", 1<<32-1)
	case "confirmed":
		f.Confirmed = t.flag()
	case "payload_raw":
		f.Payload = t.payload("payload_raw")
	case "payload_fields":
		f.Object = t.object("payload_fields")
	case "metadata":
		t.metadata()
	default:
		t.r.Skip()
	}
}

func (t *ttnV2) metadata() {
	var key []byte
	var lat, lon, alt *float64
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		switch string(key) {
		case "time":
			t.f.NetworkTime = t.instant("metadata.time")
		case "frequency":
			t.f.FrequencyHz = t.frequency("metadata.frequency")
		case "data_rate":
			t.dataRate("metadata.data_rate")
		case "gateways":
			t.gateways(t.gateway)
		case "latitude":
			lat = t.coordinate()
		case "longitude":
			lon = t.coordinate()
		case "altitude":
			alt = t.coordinate()
		default:
			t.r.Skip()
		}
	}
	t.f.Position = place(lat, lon, alt)
}

func (t *ttnV2) gateway() (g decoders.Gateway) {
	var key []byte
	var lat, lon, alt *float64
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		switch string(key) {
		case "gtw_id":
			g.ID = t.text("metadata.gateways.gtw_id")
		case "rssi":
			g.RSSI = t.number("metadata.gateways.rssi")
		case "snr":
			g.SNR = t.number("metadata.gateways.snr")
		case "time":
			g.Time = t.instant("metadata.gateways.time")
		case "latitude":
			lat = t.coordinate()
		case "longitude":
			lon = t.coordinate()
		case "altitude":
			alt = t.coordinate()
		default:
			t.r.Skip()
		}
	}
	g.Position = place(lat, lon, alt)
	return g
}

// complete names the device by its serial number, a devEUI, or else by its
// name within the application.
func (t *ttnV2) complete() {
	f := t.f
	f.Name, f.Application = t.devID, t.appID
	if f.Identifier, f.IsDevEUI = decoders.NormalizeDevEUI(t.serial); !f.IsDevEUI {
		if t.serial != "" {
			t.warn("hardware_serial", "is not a devEUI of 16 hex digits")
		}
		if t.devID != "" {
			f.Identifier = t.appID + "/" + t.devID
		}
	}
	t.named("dev_id")
	if f.NetworkTime.IsZero() {
		f.NetworkTime = earliest(f.Gateways)
	}
	if f.HasFCnt && !f.NetworkTime.IsZero() {
		f.DedupID = counted(f.FCnt, f.NetworkTime)
	}
}
