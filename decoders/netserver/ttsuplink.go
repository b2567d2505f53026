package netserver

import (
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// uplink reads uplink_message and uplink_normalized, which are the same but
// for the form of what was decoded. Absent f_port and f_cnt are zero.
func (t *theThingsStack) uplink(kind decoders.FrameKind, name string) {
	t.f.Kind, t.path = kind, name
	t.f.HasFPort, t.f.HasFCnt = true, true
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		t.uplinkField(key)
	}
}

func (t *theThingsStack) uplinkField(key []byte) {
	f := t.f
	switch string(key) {
	case "session_key_id":
		t.sessionKey = t.text("uplink_message.session_key_id")
	case "f_port":
		n, ok := t.integer("uplink_message.f_port", 255)
		f.FPort, f.HasFPort = int(n), ok
	case "f_cnt":
		f.FCnt, f.HasFCnt = t.integer("uplink_message.f_cnt", 1<<32-1)
	case "frm_payload":
		f.Payload = t.payload(t.path + ".frm_payload")
	case "app_s_key":
		// Sent along only when the payload was left encrypted.
		f.Encrypted = t.r.Kind() == jsonbody.Object
		t.r.Skip()
	case "decoded_payload", "normalized_payload":
		t.decoded(string(key))
	case "decoded_payload_warnings":
		t.codecWarnings()
	case "rx_metadata":
		t.receptions(t.gateway)
	case "settings":
		t.settings()
	case "received_at":
		f.NetworkTime = t.time(t.path + ".received_at")
	case "confirmed":
		f.Confirmed = t.boolean("uplink_message.confirmed")
	case "locations":
		t.locations()
	case "last_battery_percentage":
		t.battery()
	case "version_ids":
		t.versions()
	default:
		t.r.Skip()
	}
}

// decoded takes the form that belongs to the message; normalized_payload is a
// list inside uplink_message and says nothing that decoded_payload does not.
func (t *theThingsStack) decoded(key string) {
	if (key == "normalized_payload") != (t.f.Kind == decoders.Normalized) {
		t.r.Skip()
		return
	}
	t.f.Object = t.object(key)
}

func (t *theThingsStack) codecWarnings() {
	for ok := t.r.Array(); ok && t.r.More(); {
		if s := t.r.Value().String(); s != "" {
			t.warn("decoded_payload", s)
		}
	}
}

func (t *theThingsStack) gateway() (g decoders.Gateway) {
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		switch string(key) {
		case "gateway_ids":
			g.ID = t.gatewayID()
		case "rssi":
			g.RSSI = t.number("rx_metadata.rssi")
		case "snr":
			g.SNR = t.number("rx_metadata.snr")
		case "time":
			g.Time = t.time("rx_metadata.time")
		case "location":
			g.Position = t.position("rx_metadata.location")
		default:
			t.r.Skip()
		}
	}
	return g
}

func (t *theThingsStack) gatewayID() string {
	var key []byte
	var id, eui string
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		switch string(key) {
		case "gateway_id":
			id = t.text("rx_metadata.gateway_ids.gateway_id")
		case "eui":
			eui = t.text("rx_metadata.gateway_ids.eui")
		default:
			t.r.Skip()
		}
	}
	if id == "" {
		return eui
	}
	return id
}

func (t *theThingsStack) settings() {
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		switch string(key) {
		case "frequency":
			t.f.FrequencyHz, _ = t.integer("settings.frequency", 1e11)
		case "data_rate":
			t.dataRate()
		default:
			t.r.Skip()
		}
	}
}

func (t *theThingsStack) dataRate() {
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		if string(key) != "lora" {
			t.r.Skip()
			continue
		}
		for ok := t.r.Object(); ok && t.r.Next(&key); {
			t.lora(key)
		}
	}
	t.f.DataRate = loraRate(t.f.SpreadingFactor, t.f.BandwidthHz)
}

func (t *theThingsStack) lora(key []byte) {
	switch string(key) {
	case "bandwidth":
		n, _ := t.integer("settings.data_rate.lora.bandwidth", 1e7)
		t.f.BandwidthHz = int(n)
	case "spreading_factor":
		n, _ := t.integer("settings.data_rate.lora.spreading_factor", 12)
		t.f.SpreadingFactor = int(n)
	default:
		t.r.Skip()
	}
}

// locations holds the device's positions by where they come from: what the
// payload says is better than what a user entered.
func (t *theThingsStack) locations() {
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		if fromPayload := string(key) == "frm-payload"; fromPayload || t.f.Position == nil {
			t.f.Position = t.position("locations")
		} else {
			t.r.Skip()
		}
	}
}

func (t *theThingsStack) battery() {
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		if string(key) == "value" {
			t.f.Battery = t.number("last_battery_percentage.value")
		} else {
			t.r.Skip()
		}
	}
}

func (t *theThingsStack) versions() {
	var key []byte
	p := &t.f.Profile
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		switch string(key) {
		case "brand_id":
			p.Brand = t.text("version_ids.brand_id")
		case "model_id":
			p.Model = t.text("version_ids.model_id")
		case "hardware_version":
			p.HardwareVersion = t.text("version_ids.hardware_version")
		case "firmware_version":
			p.FirmwareVersion = t.text("version_ids.firmware_version")
		case "band_id":
			p.Band = t.text("version_ids.band_id")
		default:
			t.r.Skip()
		}
	}
}

// parseTime is envelope.time for a time that was read before it was known
// whether it is needed.
func (t *theThingsStack) parseTime(field string, raw []byte) time.Time {
	at, err := time.Parse(time.RFC3339Nano, string(raw))
	if err == nil {
		return at.UTC()
	}
	if len(raw) > 0 && t.f.TimeNote == "" {
		t.f.TimeNote = field + ": is not an RFC 3339 time: " + quoteClipped(raw)
	}
	return time.Time{}
}
