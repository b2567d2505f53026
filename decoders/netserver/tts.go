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

// readTheThingsStackFrame parses the messages of The Things Stack v3's webhooks
// (lorawan-stack api/ttn/lorawan/v3/messages.proto, ApplicationUp as JSON).
// A field mask can remove any field. The rx_metadata timestamp is the counter of a concentrator
// and is not read.
func readTheThingsStackFrame(d document, f *decoders.Frame) {
	name := setTheThingsStackKind(d, f)
	if name == "" {
		d.Refuse("", "contains no known message, such as uplink_message")
		return
	}
	ids := d.In("end_device_ids")
	if ids.devEUIOrName(f, "dev_eui", "device_id", "application_ids.application_id"); f.Identifier == "" {
		ids.As("end_device_ids").Refuse("", "has neither dev_eui nor device_id")
	}
	f.Simulated = d.Bool("simulated")
	message := d.In(name)
	if f.Kind == decoders.Uplink || f.Kind == decoders.Normalized {
		readTheThingsStackUplink(message, f)
	} else {
		// Read the messages that are not uplinks.
		f.FPort, f.HasFPort = message.FPort("f_port")
		f.Text = cmp.Or(message.Text("service"), f.Text)
		f.Object = message.Object("data")
		f.Position = message.In("location").protobufPosition()
		if reason := message.Text("error.message_format"); reason != "" {
			f.Text = "downlink failed: " + reason
		}
	}
	if f.NetworkTime = message.Timestamp("received_at"); f.NetworkTime.IsZero() {
		f.NetworkTime = d.Timestamp("received_at") // the application server's, because the network server's is missing
	}
	f.NetworkTime = cmp.Or(f.NetworkTime, gatewayTime(f.Gateways, time.Time{}))
	// Identify the frame by values that do not change if it is transmitted again: session,
	// counter and payload. They recur if an ABP device restarts, because it counts from 0
	// in the same session (lorawan-stack#4502). If the session or the time is missing, or the
	// counter cannot be read, use the identifier that the application server assigned.
	correlation := ""
	d.Each("correlation_ids", func(id document) {
		if text := id.Self().String(); correlation == "" && len(text) > len("as:up:") && strings.HasPrefix(text, "as:up:") {
			correlation = text
		}
	})
	session := d.In(name).Text("session_key_id")
	isCounted := session != "" && f.HasFCnt
	switch {
	case correlation != "" && (!isCounted || f.NetworkTime.IsZero()):
		f.DedupID = correlation + ":" + name
	case isCounted:
		f.DedupID = strings.Join([]string{session, strconv.FormatInt(f.FCnt, 10), name, hex.EncodeToString(f.Payload)}, ":")
		f.DedupSpan = repeatSpan
	}
}

// setTheThingsStackKind sets the kind of the frame and returns the key of its message.
func setTheThingsStackKind(d document, f *decoders.Frame) string {
	for _, event := range [...]struct {
		key  string
		kind decoders.FrameKind
		text string
	}{
		{"uplink_message", decoders.Uplink, ""},
		{"uplink_normalized", decoders.Normalized, ""},
		{"join_accept", decoders.Join, ""},
		{"downlink_ack", decoders.Ack, ""},
		{"downlink_nack", decoders.Nack, ""},
		{"downlink_sent", decoders.Downlink, "sent"},
		{"downlink_queued", decoders.Downlink, "queued"},
		{"downlink_queue_invalidated", decoders.Downlink, "queue invalidated"},
		{"downlink_failed", decoders.Failure, "downlink failed"},
		{"location_solved", decoders.Location, ""},
		{"service_data", decoders.Service, ""},
	} {
		if d.IsPresent(event.key) {
			f.Kind, f.Text = event.kind, event.text
			return event.key
		}
	}
	return ""
}

// readTheThingsStackUplink parses uplink_message and uplink_normalized, which differ in the field
// of the decoded values. The normalized_payload of an uplink_message is not read, because it is
// a list with the values of decoded_payload. Absent f_port and f_cnt are zero.
func readTheThingsStackUplink(d document, f *decoders.Frame) {
	f.FPort, f.HasFPort = d.FPort("f_port")
	f.FCnt, f.HasFCnt = d.FCnt("f_cnt")
	f.HasFPort, f.HasFCnt = f.HasFPort || !d.IsPresent("f_port"), f.HasFCnt || !d.IsPresent("f_cnt")
	f.Payload = d.Base64("frm_payload")
	f.Encrypted = d.Kind("app_s_key") == jsonbody.Object // present only if the payload is encrypted
	decoded := "decoded_payload"
	if f.Kind == decoders.Normalized {
		decoded = "normalized_payload"
	}
	f.Object = d.Object(decoded)
	// Add the warnings of the network's codec.
	const list = "decoded_payload_warnings"
	n := 0
	d.Each(list, func(warning document) {
		if text := warning.Self().String(); text != "" && n < maxWarnings {
			n++
			d.As("decoded_payload").Warn(list, text)
		}
	})
	f.Gateways = d.protobufGateways("rx_metadata", func(d document) decoders.Gateway {
		return decoders.Gateway{ID: cmp.Or(d.Text("gateway_ids.gateway_id"), d.Text("gateway_ids.eui")), Time: d.Timestamp("time")}
	})
	f.Battery = d.Number("last_battery_percentage.value")
	// Use one of the device's positions. The position in the payload is preferred to one that a
	// user entered.
	locations := d.In("locations")
	f.Position = locations.In("frm-payload").protobufPosition()
	locations.All(func(_ string, _ jsonbody.Value, location document) {
		if f.Position == nil {
			f.Position = location.protobufPosition()
		}
	})
}

// readTtnV2Frame parses the uplinks of version 2 of The Things Network's HTTP integration, which
// is still in use in simulators and old stacks.
func readTtnV2Frame(d document, f *decoders.Frame) {
	f.Kind = decoders.Uplink
	if d.devEUIOrName(f, "hardware_serial", "dev_id", "app_id"); f.Identifier == "" {
		d.Refuse("dev_id", noDevice)
	}
	f.FPort, f.HasFPort = d.FPort("port")
	f.FCnt, f.HasFCnt = d.FCnt("counter")
	f.Payload = d.Base64("payload_raw")
	f.Object = d.Object("payload_fields")
	f.Gateways = d.Gateways("metadata.gateways", func(d document) decoders.Gateway {
		g := d.reception("gtw_id")
		g.Time, g.Position = d.Time("time"), d.Place("latitude", "longitude")
		return g
	})
	f.Position = d.Place("metadata.latitude", "metadata.longitude")
	f.NetworkTime = cmp.Or(d.Time("metadata.time"), gatewayTime(f.Gateways, time.Time{}))
	f.DedupID = counterID(f)
}
