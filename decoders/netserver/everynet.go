package netserver

import (
	"time"

	"github.com/penstock/penstock/decoders"
)

// everynet reads the messages of Everynet's HTTP adapter (ns.docs.everynet.io,
// messages and types). Without the application's key it posts the payload as
// encrypted_payload, which is ciphertext.
type everynet struct {
	envelope
	kind      string
	gatewayID string
	hash, id  string
	metaTime  time.Time
	heard     decoders.Gateway
	position  *decoders.Position // of a location message
	message   string             // of an error, warning or info
	duplicate bool
}

func parseEverynet(p Post) ([]decoders.Frame, error) {
	e := everynet{envelope: newEnvelope(Everynet, p.Body)}
	var key []byte
	for ok := e.r.Object(); ok && e.r.Next(&key); {
		switch string(key) {
		case "type":
			e.kind = e.text("type")
		case "meta":
			e.meta()
		case "params":
			e.params()
		default:
			e.r.Skip()
		}
	}
	e.complete()
	return e.finish()
}

func (e *everynet) meta() {
	var key []byte
	for ok := e.r.Object(); ok && e.r.Next(&key); {
		switch string(key) {
		case "device":
			e.f.Identifier = e.text("meta.device")
		case "application":
			e.f.Application = e.text("meta.application")
		case "gateway":
			e.gatewayID = e.text("meta.gateway")
		case "packet_hash":
			e.hash = e.text("meta.packet_hash")
		case "packet_id":
			e.id = e.text("meta.packet_id")
		case "time":
			e.metaTime = e.instant("meta.time")
		default:
			e.r.Skip()
		}
	}
}

func (e *everynet) params() {
	var key []byte
	for ok := e.r.Object(); ok && e.r.Next(&key); {
		e.param(key)
	}
}

func (e *everynet) param(key []byte) {
	f := e.f
	switch string(key) {
	case "rx_time":
		f.NetworkTime = e.instant("params.rx_time")
	case "counter_up":
		f.FCnt, f.HasFCnt = e.integer("params.counter_up", 1<<32-1)
	case "port":
		n, ok := e.integer("params.port", 255)
		f.FPort, f.HasFPort = int(n), ok
	case "payload":
		if b := e.payload("params.payload"); b != nil {
			f.Payload, f.Encrypted = b, false
		}
	case "encrypted_payload":
		if b := e.payload("params.encrypted_payload"); f.Payload == nil && b != nil {
			f.Payload, f.Encrypted = b, true
		}
	case "duplicate":
		e.duplicate = e.flag()
	case "radio":
		e.radio()
	case "lora":
		e.lora()
	case "battery":
		f.Battery = e.loraBattery("params.battery")
	case "margin":
		f.Margin = e.number("params.margin")
	case "message", "error":
		e.message = e.text("params." + string(key))
	case "position", "solution", "location", "coordinates":
		e.position = e.where()
	default:
		e.r.Skip()
	}
}

// complete names the device; a message about a gateway alone is about that.
func (e *everynet) complete() {
	f := e.f
	e.event()
	if f.Identifier == "" {
		f.Identifier = e.gatewayID
	}
	if id, ok := decoders.NormalizeDevEUI(f.Identifier); ok {
		f.Identifier, f.IsDevEUI = id, true
	}
	e.named("meta.device")
	if e.heard.ID = e.gatewayID; e.gatewayID != "" || e.heard.RSSI != nil {
		f.Gateways = []decoders.Gateway{e.heard}
	}
	if f.NetworkTime.IsZero() {
		f.NetworkTime = e.metaTime
	}
	e.dedup()
}

// event maps the type; Text tells apart those that share a kind.
func (e *everynet) event() {
	f := e.f
	f.Text = e.message
	switch e.kind {
	case "uplink":
		f.Kind, f.Supplement, f.Extensible = decoders.Uplink, e.duplicate, !e.duplicate
	case "join_request", "join_response":
		f.Kind, f.Text = decoders.Join, e.kind
	case "downlink", "downlink_request", "downlink_response", "downlink_claim", "status_request":
		f.Kind, f.Text = decoders.Downlink, e.kind
	case "status_response":
		f.Kind, f.Text = decoders.Status, e.kind
	case "location":
		f.Kind, f.Position = decoders.Location, e.position
	case "error":
		f.Kind = decoders.Failure
	case "warning", "info":
		f.Kind = decoders.Log
	case "":
		e.refuse("type", "is missing")
	default:
		f.Kind, f.Text = decoders.Service, e.kind
	}
}

// dedup prefers the hash, which the copies of a frame from several gateways
// share. A downlink_request concerns the same packet as its uplink.
func (e *everynet) dedup() {
	f := e.f
	switch {
	case e.hash != "":
		f.DedupID = e.hash + ":" + e.kind
	case e.id != "":
		f.DedupID = e.id + ":" + e.kind
	case f.HasFCnt && !f.NetworkTime.IsZero():
		f.DedupID = counted(f.FCnt, f.NetworkTime) + ":" + e.kind
	}
}
