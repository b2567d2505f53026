package netserver

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
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
	path        string // the key of the message
	serverTime  []byte // kept apart: the network's own time is preferred
}

func parseTheThingsStack(p Post) ([]decoders.Frame, error) {
	t := theThingsStack{envelope: newEnvelope(TheThingsStack, p.Body)}
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		t.field(key)
	}
	t.complete()
	return t.finish()
}

func (t *theThingsStack) field(key []byte) {
	switch string(key) {
	case "end_device_ids":
		t.device()
	case "correlation_ids":
		t.correlations()
	case "received_at":
		t.serverTime = t.r.Value().Raw()
	case "simulated":
		t.f.Simulated = t.boolean("simulated")
	case "uplink_message":
		t.uplink(decoders.Uplink, "uplink_message")
	case "uplink_normalized":
		t.uplink(decoders.Normalized, "uplink_normalized")
	default:
		t.otherMessage(string(key))
	}
}

// otherMessage reads the messages that are no uplinks.
func (t *theThingsStack) otherMessage(name string) {
	switch name {
	case "join_accept":
		t.plain(decoders.Join, name, "")
	case "downlink_ack":
		t.plain(decoders.Ack, name, "")
	case "downlink_nack":
		t.plain(decoders.Nack, name, "")
	case "downlink_sent":
		t.plain(decoders.Downlink, name, "sent")
	case "downlink_queued":
		t.plain(decoders.Downlink, name, "queued")
	case "downlink_queue_invalidated":
		t.plain(decoders.Downlink, name, "queue invalidated")
	case "downlink_failed":
		t.failed()
	case "location_solved":
		t.located()
	case "service_data":
		t.serviceData()
	default:
		t.r.Skip()
	}
}

func (t *theThingsStack) device() {
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		switch string(key) {
		case "device_id":
			t.deviceID = t.text("end_device_ids.device_id")
		case "dev_eui":
			t.devEUI = t.text("end_device_ids.dev_eui")
		case "application_ids":
			t.application()
		default:
			t.r.Skip()
		}
	}
}

func (t *theThingsStack) application() {
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		if string(key) == "application_id" {
			t.applicationID = t.text("end_device_ids.application_ids.application_id")
		} else {
			t.r.Skip()
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

// plain reads a message of which only the kind and the time matter.
func (t *theThingsStack) plain(kind decoders.FrameKind, name, text string) {
	t.f.Kind, t.f.Text, t.path = kind, text, name
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		switch string(key) {
		case "received_at":
			t.f.NetworkTime = t.time(name + ".received_at")
		case "f_port":
			n, ok := t.integer(name+".f_port", 255)
			t.f.FPort, t.f.HasFPort = int(n), ok
		default:
			t.r.Skip()
		}
	}
}

// failed reads the error of a downlink that could not be sent.
func (t *theThingsStack) failed() {
	t.f.Kind, t.f.Text, t.path = decoders.Failure, "downlink failed", "downlink_failed"
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		if string(key) != "error" {
			t.r.Skip()
			continue
		}
		for ok := t.r.Object(); ok && t.r.Next(&key); {
			if string(key) == "message_format" {
				t.f.Text = "downlink failed: " + t.text("downlink_failed.error.message_format")
			} else {
				t.r.Skip()
			}
		}
	}
}

func (t *theThingsStack) located() {
	t.f.Kind, t.path = decoders.Location, "location_solved"
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		switch string(key) {
		case "service":
			t.f.Text = t.text("location_solved.service")
		case "location":
			t.f.Position = t.position("location_solved.location")
		default:
			t.r.Skip()
		}
	}
}

func (t *theThingsStack) serviceData() {
	t.f.Kind, t.path = decoders.Service, "service_data"
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		switch string(key) {
		case "service":
			t.f.Text = t.text("service_data.service")
		case "data":
			t.f.Object = t.object("service_data.data")
		default:
			t.r.Skip()
		}
	}
}

// complete names the device and the message once all keys were seen.
func (t *theThingsStack) complete() {
	f := t.f
	f.Name, f.Application = t.deviceID, t.applicationID
	if f.Kind == "" {
		t.refuse("", "holds no message that is known")
	}
	t.identify()
	if f.NetworkTime.IsZero() {
		f.NetworkTime = t.parseTime("received_at", t.serverTime)
	}
	if f.NetworkTime.IsZero() {
		f.NetworkTime = earliest(f.Gateways)
	}
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
		f.DedupID = t.correlation + ":" + t.path
	case numbered:
		f.DedupID = strings.Join([]string{t.sessionKey, strconv.FormatInt(f.FCnt, 10), t.path, hex.EncodeToString(f.Payload)}, ":")
		f.DedupSpan = repeatSpan
	}
}
