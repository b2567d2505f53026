package netserver

import (
	"cmp"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// theThingsStack reads the messages of The Things Stack v3's webhooks
// (lorawan-stack api/ttn/lorawan/v3/messages.proto, ApplicationUp as JSON).
// A field mask can remove any field, so whatever can be absent may be. The
// rx_metadata timestamp is a concentrator's counter and is never read.
type theThingsStack struct {
	envelope
	deviceID, applicationID, devEUI string

	correlation string // the message's own correlation id
	sessionKey  string
	message     string         // its key
	serverTime  jsonbody.Value // kept apart: the network's own time is preferred
}

func parseTheThingsStack(p Post) ([]decoders.Frame, error) {
	t := theThingsStack{envelope: newEnvelope(TheThingsStack, p.Body)}
	for key := range t.r.Fields() {
		t.field(key)
	}
	t.complete()
	return t.finish()
}

func (t *theThingsStack) field(key []byte) {
	if t.r.Kind() <= jsonbody.Null {
		return // of another event
	}
	switch string(key) {
	case "end_device_ids":
		t.device()
	case "correlation_ids":
		t.correlations()
	case "received_at":
		t.serverTime = t.r.Value()
	case "simulated":
		t.f.Simulated = t.boolean("simulated")
	case "uplink_message":
		t.uplink(decoders.Uplink, "uplink_message")
	case "uplink_normalized":
		t.uplink(decoders.Normalized, "uplink_normalized")
	default:
		t.event(string(key))
	}
}

func (t *theThingsStack) device() {
	for key := range t.fieldsOf("end_device_ids") {
		switch string(key) {
		case "device_id":
			t.deviceID = t.text("device_id")
		case "dev_eui":
			t.devEUI = t.text("dev_eui")
		case "application_ids":
			for key := range t.fieldsOf("end_device_ids.application_ids") {
				if string(key) == "application_id" {
					t.applicationID = t.text("application_id")
				}
			}
		}
	}
}

// correlations keeps the identifier that the application server gave the
// message.
func (t *theThingsStack) correlations() {
	for ok := t.r.Array(); ok && t.r.More(); {
		raw := t.r.Value().Raw()
		if t.correlation == "" && len(raw) > 6 && string(raw[:6]) == "as:up:" {
			t.correlation = string(raw)
		}
	}
}

// event reads the messages that are no uplinks.
func (t *theThingsStack) event(name string) {
	f := t.f
	switch name {
	case "join_accept":
		f.Kind = decoders.Join
	case "downlink_ack":
		f.Kind = decoders.Ack
	case "downlink_nack":
		f.Kind = decoders.Nack
	case "downlink_sent":
		f.Kind, f.Text = decoders.Downlink, "sent"
	case "downlink_queued":
		f.Kind, f.Text = decoders.Downlink, "queued"
	case "downlink_queue_invalidated":
		f.Kind, f.Text = decoders.Downlink, "queue invalidated"
	case "downlink_failed":
		f.Kind, f.Text = decoders.Failure, "downlink failed"
	case "location_solved":
		f.Kind = decoders.Location
	case "service_data":
		f.Kind = decoders.Service
	default:
		return
	}
	t.message = name
	for key := range t.fieldsOf(name) {
		t.eventField(key)
	}
}

func (t *theThingsStack) eventField(key []byte) {
	switch string(key) {
	case "received_at":
		t.f.NetworkTime = t.time("received_at")
	case "f_port":
		t.port("f_port")
	case "service":
		t.f.Text = t.text("service")
	case "data":
		t.f.Object = t.object("data")
	case "location":
		t.f.Position = t.position(t.pathOf("location"))
	case "error":
		for key := range t.fieldsOf(t.pathOf("error")) {
			if string(key) == "message_format" {
				t.f.Text = "downlink failed: " + t.text("message_format")
			}
		}
	}
}

// uplink reads uplink_message and uplink_normalized, which are the same but
// for the form of what was decoded. Absent f_port and f_cnt are zero.
func (t *theThingsStack) uplink(kind decoders.FrameKind, name string) {
	t.f.Kind, t.message = kind, name
	t.f.HasFPort, t.f.HasFCnt = true, true
	for key := range t.r.Fields() {
		t.uplinkField(key)
	}
}

func (t *theThingsStack) uplinkField(key []byte) {
	f := t.f
	switch string(key) {
	case "session_key_id":
		t.sessionKey = t.text("uplink_message.session_key_id")
	case "f_port":
		t.port("uplink_message.f_port")
	case "f_cnt":
		f.FCnt, f.HasFCnt = t.integer("uplink_message.f_cnt", 1<<32-1)
	case "frm_payload":
		f.Payload = t.payload(t.message + ".frm_payload")
	case "app_s_key":
		// Sent along only when the payload was left encrypted.
		f.Encrypted = t.r.Kind() == jsonbody.Object
	case "decoded_payload", "normalized_payload":
		t.decoded(string(key))
	case "decoded_payload_warnings":
		t.codecWarnings()
	case "rx_metadata":
		t.receptions(t.gateway)
	case "settings":
		t.settings()
	case "received_at":
		f.NetworkTime = t.time(t.message + ".received_at")
	case "confirmed":
		f.Confirmed = t.boolean("uplink_message.confirmed")
	case "locations":
		t.locations()
	case "last_battery_percentage":
		for key := range t.fieldsOf("last_battery_percentage") {
			if string(key) == "value" {
				f.Battery = t.number("value")
			}
		}
	case "version_ids":
		t.versions()
	}
}

// decoded takes the form that belongs to the message; normalized_payload is a
// list inside uplink_message and says nothing that decoded_payload does not.
func (t *theThingsStack) decoded(key string) {
	if (key == "normalized_payload") == (t.f.Kind == decoders.Normalized) {
		t.f.Object = t.object(key)
	}
}

func (t *theThingsStack) codecWarnings() {
	for ok := t.r.Array(); ok && t.r.More(); {
		if s := t.r.Value().String(); s != "" {
			t.warn("decoded_payload", s)
		}
	}
}

func (t *theThingsStack) gateway() (g decoders.Gateway) {
	for key := range t.fieldsOf("rx_metadata") {
		switch string(key) {
		case "gateway_ids":
			g.ID = t.gatewayID()
		case "time":
			g.Time = t.time("time")
		default:
			t.gatewayField(key, &g, "rx_metadata.location")
		}
	}
	return g
}

func (t *theThingsStack) gatewayID() string {
	var id, eui string
	for key := range t.fieldsOf("rx_metadata.gateway_ids") {
		switch string(key) {
		case "gateway_id":
			id = t.text("gateway_id")
		case "eui":
			eui = t.text("eui")
		}
	}
	return cmp.Or(id, eui)
}

func (t *theThingsStack) settings() {
	for key := range t.fieldsOf("settings") {
		switch string(key) {
		case "frequency":
			t.frequency()
		case "data_rate":
			for key := range t.r.Fields() {
				if string(key) == "lora" {
					t.lora("settings.data_rate.lora", "spreading_factor")
				}
			}
		}
	}
}

// locations holds the device's positions by where they come from: what the
// payload says is better than what a user entered.
func (t *theThingsStack) locations() {
	for key := range t.r.Fields() {
		if fromPayload := string(key) == "frm-payload"; fromPayload || t.f.Position == nil {
			t.f.Position = t.position("locations")
		}
	}
}

func (t *theThingsStack) versions() {
	p := &t.f.Profile
	for key := range t.fieldsOf("version_ids") {
		switch string(key) {
		case "brand_id":
			p.Brand = t.text("brand_id")
		case "model_id":
			p.Model = t.text("model_id")
		case "hardware_version":
			p.HardwareVersion = t.text("hardware_version")
		case "firmware_version":
			p.FirmwareVersion = t.text("firmware_version")
		case "band_id":
			p.Band = t.text("band_id")
		}
	}
}

// complete names the device and the message once all keys were seen.
func (t *theThingsStack) complete() {
	f := t.f
	f.Name, f.Application = t.deviceID, t.applicationID
	if f.Kind == "" {
		t.refuse("", "holds no message that is known, such as uplink_message")
	}
	t.identify()
	if f.NetworkTime.IsZero() {
		f.NetworkTime = t.parseTime("received_at", t.serverTime)
	}
	f.NetworkTime = firstTime(f.NetworkTime, gatewayTime(f.Gateways, time.Time{}))
	t.dedup()
}

// identify takes the devEUI, which not every device has, or else the device's
// name within its application.
func (t *theThingsStack) identify() {
	f := t.f
	if f.Identifier, f.IsDevEUI = decoders.NormalizeDevEUI(t.devEUI); f.IsDevEUI {
		return
	}
	if t.devEUI != "" {
		t.warn("end_device_ids.dev_eui", notDevEUI)
	}
	if t.deviceID == "" {
		t.refuse("end_device_ids", "holds neither dev_eui nor device_id")
		return
	}
	f.Identifier = t.applicationID + "/" + t.deviceID
}

// dedup prefers what a retransmission of the same frame shares: session, counter
// and payload, at about the same time. An ABP device that restarts counts from 0
// again in its one session (lorawan-stack#4502).
func (t *theThingsStack) dedup() {
	f := t.f
	numbered := t.sessionKey != "" && f.HasFCnt
	switch {
	case t.correlation != "" && (!numbered || f.NetworkTime.IsZero()):
		f.DedupID = t.correlation + ":" + t.message
	case numbered:
		f.DedupID = strings.Join([]string{t.sessionKey, strconv.FormatInt(f.FCnt, 10), t.message, hex.EncodeToString(f.Payload)}, ":")
		f.DedupSpan = repeatSpan
	}
}
