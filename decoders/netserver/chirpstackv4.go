package netserver

import (
	"cmp"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
)

// readChirpStackV4Frame parses the events of ChirpStack v4's HTTP integration
// (chirpstack api/proto/integration/integration.proto as protobuf JSON, which
// leaves out members that are zero, false or empty). Hosted Helium posts the same format.
func readChirpStackV4Frame(d document, f *decoders.Frame) {
	device := d.In("deviceInfo")
	device.DevEUI(f, "devEui")
	f.Name = device.Text("deviceName")
	setChirpStackV4Kind(d, f)
	f.FCnt, f.HasFCnt = d.FCnt("fCnt")
	f.FPort, f.HasFPort = d.FPort("fPort")
	if f.Kind == decoders.Uplink {
		f.HasFCnt, f.HasFPort = f.HasFCnt || !d.IsPresent("fCnt"), f.HasFPort || !d.IsPresent("fPort")
	}
	f.Payload = d.Base64("data")
	f.Object = d.Object("object")
	f.Encrypted = d.In("joinServerContext").HasFields() // an empty context means that the payload is decrypted
	f.Position = d.In("location").protobufPosition()
	f.Margin, f.Battery = d.Number("margin"), d.Number("batteryLevel")
	if d.Bool("externalPowerSource") || d.Bool("batteryLevelUnavailable") {
		f.Battery = nil
	}
	// Read the receptions. The gateway's own time, gwTime, is preferred. serverTime is the
	// earliest time at which the server received the frame.
	var serverTime time.Time
	f.Gateways = d.protobufGateways("rxInfo", func(d document) decoders.Gateway {
		nsTime := d.Timestamp("nsTime")
		if !nsTime.IsZero() && (serverTime.IsZero() || nsTime.Before(serverTime)) {
			serverTime = nsTime
		}
		return decoders.Gateway{ID: d.Text("gatewayId"), Time: cmp.Or(d.Timestamp("gwTime"), d.Timestamp("time"), nsTime)}
	})
	if id := d.Text("gatewayId"); id != "" && f.Kind == decoders.TxAck {
		f.Gateways = []decoders.Gateway{{ID: id}}
	}
	// Remove values of other events from an uplink: some servers write the members of all
	// events, with null or zero in the members of other events.
	if f.Kind == decoders.Uplink {
		f.Battery, f.Margin, f.Position = nil, nil, nil
	}
	// Correct the time. The server copies it from the first gateway that has a clock, which
	// may be wrong; the times at which the server received the frame are right.
	if f.NetworkTime = d.Timestamp("time"); f.NetworkTime.IsZero() {
		f.NetworkTime = gatewayTime(f.Gateways, serverTime)
	} else if plausible := plausibleTime(f.Gateways, serverTime, f.NetworkTime); !plausible.Equal(f.NetworkTime) {
		noteWrongTime(f, "time", f.NetworkTime)
		f.NetworkTime = plausible
	}
	// Identify the event by its kind too: a device's uplink, its status and the log line about
	// it have the same deduplicationId.
	if id := d.Text("deduplicationId"); id != "" {
		f.DedupID = id + ":" + string(f.Kind)
	} else if id := d.Text("downlinkId"); id != "" {
		f.DedupID = "downlink-" + id + ":" + string(f.Kind)
	}
}

// setChirpStackV4Kind sets the kind of the frame from the event in the query or, if there is
// none, from the members of the body.
func setChirpStackV4Kind(d document, f *decoders.Frame) {
	name := d.post().Query.Get("event")
	switch f.Kind = chirpStackKind(name); {
	case name == "":
		f.Kind = chirpStackV4ImpliedKind(d)
	case name == "log":
		f.Kind = decoders.Log
	case f.Kind == "":
		d.Refuse("event", unknownEvent(name))
	}
	acknowledged, description := d.Bool("acknowledged"), d.Text("description")
	switch f.Kind {
	case decoders.Ack:
		if !acknowledged {
			f.Kind = decoders.Nack
		}
	case decoders.Log:
		f.Text = d.Text("level") + " " + d.Text("code") + ": " + description
	case decoders.Service:
		f.Text = d.Text("integrationName") + " " + d.Text("eventType")
	default:
		f.Text = description
	}
}

// chirpStackV4ImpliedKind returns the kind of event that a member implies. A null implies nothing,
// because some servers write the members of all events.
func chirpStackV4ImpliedKind(d document) decoders.FrameKind {
	for _, implied := range [...]struct {
		path string
		kind decoders.FrameKind
	}{
		{"fPort|data", decoders.Uplink}, {"acknowledged", decoders.Ack}, {"batteryLevel|margin", decoders.Status}, {"code", decoders.Log},
		{"location", decoders.Location}, {"downlinkId", decoders.TxAck}, {"integrationName", decoders.Service},
	} {
		if d.IsPresent(implied.path) {
			return implied.kind
		}
	}
	if d.Text("queueItemId") != "" {
		return decoders.Ack
	}
	return decoders.Join
}

// chirpStackKind returns the kind of an event that both versions have, or "".
func chirpStackKind(name string) decoders.FrameKind {
	switch name {
	case "up":
		return decoders.Uplink
	case "join", "ack", "txack", "status", "location":
		return decoders.FrameKind(name)
	case "integration":
		return decoders.Service
	}
	return ""
}

func unknownEvent(name string) string {
	return "is unknown: " + strconv.Quote(name[:min(len(name), 40)])
}
