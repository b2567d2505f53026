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

// theThingsStackFrame reads the messages of The Things Stack v3's webhooks
// (lorawan-stack api/ttn/lorawan/v3/messages.proto, ApplicationUp as JSON).
// A field mask can remove any field, so whatever can be absent may be. The
// rx_metadata timestamp is a concentrator's counter and is never read.
func theThingsStackFrame(d document, f *decoders.Frame) {
	name := theThingsStackEvent(d, f)
	if name == "" {
		d.Refuse("", "holds no message that is known, such as uplink_message")
		return
	}
	ids := d.In("end_device_ids")
	if ids.devEUIOrName(f, "dev_eui", "device_id", "application_ids.application_id"); f.Identifier == "" {
		ids.As("end_device_ids").Refuse("", "holds neither dev_eui nor device_id")
	}
	f.Simulated = d.Bool("simulated")
	message := d.In(name)
	if f.Kind == decoders.Uplink || f.Kind == decoders.Normalized {
		theThingsStackUplink(message, f)
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
		f.NetworkTime = d.Timestamp("received_at") // the server's: the network's own is preferred
	}
	f.NetworkTime = cmp.Or(f.NetworkTime, gatewayTime(f.Gateways, time.Time{}))
	// Prefer what a retransmission of the same frame shares: session, counter and payload,
	// at about the same time. An ABP device that restarts counts from 0 again in its one
	// session (lorawan-stack#4502). Otherwise take the identifier that the application
	// server gave the message.
	correlation := ""
	d.Each("correlation_ids", func(id document) {
		if text := id.Self().String(); correlation == "" && len(text) > len("as:up:") && strings.HasPrefix(text, "as:up:") {
			correlation = text
		}
	})
	session := d.In(name).Text("session_key_id")
	numbered := session != "" && f.HasFCnt
	switch {
	case correlation != "" && (!numbered || f.NetworkTime.IsZero()):
		f.DedupID = correlation + ":" + name
	case numbered:
		f.DedupID = strings.Join([]string{session, strconv.FormatInt(f.FCnt, 10), name, hex.EncodeToString(f.Payload)}, ":")
		f.DedupSpan = repeatSpan
	}
}

// theThingsStackEvent sets the kind of the frame and returns the key of its message.
func theThingsStackEvent(d document, f *decoders.Frame) string {
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

// theThingsStackUplink reads uplink_message and uplink_normalized, which are the same but
// for the form of what was decoded: normalized_payload is a list inside uplink_message and
// says nothing that decoded_payload does not. Absent f_port and f_cnt are zero.
func theThingsStackUplink(d document, f *decoders.Frame) {
	f.FPort, f.HasFPort = d.FPort("f_port")
	f.FCnt, f.HasFCnt = d.FCnt("f_cnt")
	f.HasFPort, f.HasFCnt = f.HasFPort || !d.IsPresent("f_port"), f.HasFCnt || !d.IsPresent("f_cnt")
	f.Payload = d.Base64("frm_payload")
	f.Encrypted = d.Kind("app_s_key") == jsonbody.Object // sent along only when the payload was left encrypted
	decoded := "decoded_payload"
	if f.Kind == decoders.Normalized {
		decoded = "normalized_payload"
	}
	f.Object = d.Object(decoded)
	// Note the warnings of the network's own codec.
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
	// Take one of the device's positions by where they come from: what the payload says is
	// better than what a user entered.
	locations := d.In("locations")
	f.Position = locations.In("frm-payload").protobufPosition()
	locations.All(func(_ string, _ jsonbody.Value, location document) {
		if f.Position == nil {
			f.Position = location.protobufPosition()
		}
	})
}

// ttnV2Frame reads the uplinks of The Things Network's HTTP integration of
// version 2, which is shut down but lives on in simulators and old stacks.
func ttnV2Frame(d document, f *decoders.Frame) {
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
	f.DedupID = counted(f)
}
