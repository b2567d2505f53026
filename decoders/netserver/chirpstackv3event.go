package netserver

import (
	"strconv"

	"github.com/penstock/penstock/decoders"
)

// chirpStackV3Event takes the event from the query or else from the keys of the body.
func chirpStackV3Event(d document, f *decoders.Frame, name string) {
	failure, reason := d.Text("type"), d.Text("error")
	integration, kind := d.Text("integrationName"), d.Text("eventType")
	acknowledged := decoders.Nack
	if d.Bool("acknowledged") {
		acknowledged = decoders.Ack
	}
	if name == "" {
		f.Kind = chirpStackV3Implied(d, f)
	} else if f.Kind = chirpStackV3Named(name); f.Kind == "" {
		d.Refuse("event", "is unknown: "+strconv.Quote(name[:min(len(name), 40)]))
	}
	switch f.Kind {
	case decoders.Ack:
		f.Kind = acknowledged
	case decoders.Failure:
		f.Text = failure + ": " + reason
	case decoders.Service:
		f.Text = integration + " " + kind
	}
}

func chirpStackV3Named(name string) decoders.FrameKind {
	switch name {
	case "up":
		return decoders.Uplink
	case "join":
		return decoders.Join
	case "ack":
		return decoders.Ack
	case "error":
		return decoders.Failure
	case "status":
		return decoders.Status
	case "location":
		return decoders.Location
	case "txack":
		return decoders.TxAck
	case "integration":
		return decoders.Service
	}
	return ""
}

// chirpStackV3Implied takes the kind of event that the first telling key
// speaks for.
func chirpStackV3Implied(d document, f *decoders.Frame) (kind decoders.FrameKind) {
	for key := range d.Keys() {
		if kind = chirpStackV3Hint(key); kind != "" {
			return kind
		}
	}
	if f.HasFCnt {
		return decoders.Uplink
	}
	return decoders.Join
}

func chirpStackV3Hint(key string) decoders.FrameKind {
	switch key {
	case "fPort", "data":
		return decoders.Uplink
	case "acknowledged":
		return decoders.Ack
	case "margin", "batteryLevel":
		return decoders.Status
	case "error":
		return decoders.Failure
	case "location":
		return decoders.Location
	case "gatewayID":
		return decoders.TxAck
	case "integrationName":
		return decoders.Service
	}
	return ""
}
