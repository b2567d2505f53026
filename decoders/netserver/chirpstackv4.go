package netserver

import (
	"cmp"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
)

// chirpStackV4Frame reads the events of ChirpStack v4's HTTP integration
// (chirpstack api/proto/integration/integration.proto as protobuf JSON, which
// leaves out what is zero, false or empty). Hosted Helium posts the same.
func chirpStackV4Frame(d document, f *decoders.Frame) {
	device := d.In("deviceInfo")
	device.DevEUI(f, "devEui")
	f.Name = device.Text("deviceName")
	chirpStackV4Event(d, f)
	f.FCnt, f.HasFCnt = d.FCnt("fCnt")
	f.FPort, f.HasFPort = d.FPort("fPort")
	if f.Kind == decoders.Uplink {
		f.HasFCnt, f.HasFPort = f.HasFCnt || !d.IsPresent("fCnt"), f.HasFPort || !d.IsPresent("fPort")
	}
	f.Payload = d.Base64("data")
	f.Object = d.Object("object")
	for range d.In("joinServerContext").Keys() {
		f.Encrypted = true // unless it is empty
	}
	f.Position = d.In("location").protobufPosition()
	f.Margin, f.Battery = d.Number("margin"), d.Number("batteryLevel")
	if d.Bool("externalPowerSource") || d.Bool("batteryLevelUnavailable") {
		f.Battery = nil
	}
	// Read how the frame was heard. Of a gateway's times gwTime, its own, is preferred;
	// serverTime is the first of the times at which the server received the frame.
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
	// Remove from an uplink what only other events report: some servers write the members
	// of all events, with null or zero in those that do not apply.
	if f.Kind == decoders.Uplink {
		f.Battery, f.Margin, f.Position = nil, nil, nil
	}
	// Correct the time, which the server takes from the first gateway that has a clock: one
	// whose clock is wrong differs from the times at which the server received the frame.
	if f.NetworkTime = d.Timestamp("time"); f.NetworkTime.IsZero() {
		f.NetworkTime = gatewayTime(f.Gateways, serverTime)
	} else if believed := believable(f.Gateways, serverTime, f.NetworkTime); !believed.Equal(f.NetworkTime) {
		disbelieve(f, "time", f.NetworkTime)
		f.NetworkTime = believed
	}
	// Make the identifier the event's own: a device's uplink, its status and the log line
	// about it share one deduplicationId.
	if id := d.Text("deduplicationId"); id != "" {
		f.DedupID = id + ":" + string(f.Kind)
	} else if id := d.Text("downlinkId"); id != "" {
		f.DedupID = "downlink-" + id + ":" + string(f.Kind)
	}
}

// chirpStackV4Event takes the event from the query or else from the keys of the body.
func chirpStackV4Event(d document, f *decoders.Frame) {
	name := d.notes.post.Query.Get("event")
	switch f.Kind = chirpStackEvent(name); {
	case name == "":
		// Take the first kind that a key speaks for. A null says nothing: some servers write
		// the members of all events.
		switch {
		case d.IsPresent("fPort"), d.IsPresent("data"):
			f.Kind = decoders.Uplink
		case d.IsPresent("acknowledged"):
			f.Kind = decoders.Ack
		case d.IsPresent("batteryLevel"), d.IsPresent("margin"):
			f.Kind = decoders.Status
		case d.IsPresent("code"):
			f.Kind = decoders.Log
		case d.IsPresent("location"):
			f.Kind = decoders.Location
		case d.IsPresent("downlinkId"):
			f.Kind = decoders.TxAck
		case d.IsPresent("integrationName"):
			f.Kind = decoders.Service
		case d.Text("queueItemId") != "":
			f.Kind = decoders.Ack
		default:
			f.Kind = decoders.Join
		}
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

// chirpStackEvent is the kind of an event that both versions have.
func chirpStackEvent(name string) decoders.FrameKind {
	switch name {
	case "up":
		return decoders.Uplink
	case "join":
		return decoders.Join
	case "ack":
		return decoders.Ack
	case "txack":
		return decoders.TxAck
	case "status":
		return decoders.Status
	case "location":
		return decoders.Location
	case "integration":
		return decoders.Service
	}
	return ""
}

func unknownEvent(name string) string {
	return "is unknown: " + strconv.Quote(name[:min(len(name), 40)])
}
