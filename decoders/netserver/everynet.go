package netserver

import (
	"cmp"

	"github.com/penstock/penstock/decoders"
)

// readEverynetFrame parses the messages of Everynet's HTTP adapter
// (ns.docs.everynet.io, messages and types). If the adapter has no application key, it
// posts the ciphertext of the payload as encrypted_payload.
func readEverynetFrame(d document, f *decoders.Frame) {
	kind := d.Required("type")
	// Map the type to a kind. Types with a common kind differ in Text.
	f.Text = d.Text("params.message|error")
	switch kind {
	case "uplink":
		duplicate := d.Flag("params.duplicate")
		f.Kind, f.Supplement, f.Extensible = decoders.Uplink, duplicate, !duplicate
	case "join_request", "join_response":
		f.Kind, f.Text = decoders.Join, kind
	case "downlink", "downlink_request", "downlink_response", "downlink_claim", "status_request":
		f.Kind, f.Text = decoders.Downlink, kind
	case "status_response":
		f.Kind, f.Text = decoders.Status, kind
	case "location":
		f.Kind, f.Position = decoders.Location, d.Position("params.position|solution|location|coordinates")
	case "error":
		f.Kind = decoders.Failure
	case "warning", "info":
		f.Kind = decoders.Log
	default:
		f.Kind, f.Text = decoders.Service, kind
	}
	// Identify the device, or the gateway if the message is about a gateway only.
	reception := decoders.Gateway{
		ID:       d.Text("meta.gateway"),
		RSSI:     d.Number("params.radio.hardware.rssi"),
		SNR:      d.Number("params.radio.hardware.snr"),
		Time:     d.Time("params.radio.time"),
		Position: d.Position("params.radio.hardware.gps"),
	}
	setBestGateway(f, reception)
	d.Device(f, "meta.device", cmp.Or(d.Text("meta.device"), reception.ID))
	f.FCnt, f.HasFCnt = d.FCnt("params.counter_up")
	f.FPort, f.HasFPort = d.FPort("params.port")
	f.Payload = d.Base64("params.payload")
	if b := d.Base64("params.encrypted_payload"); f.Payload == nil && b != nil {
		f.Payload, f.Encrypted = b, true
	}
	if kind == "status_response" {
		f.Battery, f.Margin = d.LoRaBattery("params.battery"), d.Number("params.margin")
	}
	f.NetworkTime = cmp.Or(d.Time("params.rx_time"), d.Time("meta.time"))
	// Prefer the hash, which is equal in the copies of a frame from several gateways. It
	// recurs if a device restarts its counter in the same session. The kind distinguishes
	// a downlink_request from the uplink, because both have the id of one packet.
	hash, id := d.Text("meta.packet_hash"), d.Text("meta.packet_id")
	switch {
	case hash != "":
		f.DedupID, f.DedupSpan = hash+":"+kind, repeatSpan
	case id != "":
		f.DedupID = id + ":" + kind
	case counterID(f) != "":
		f.DedupID = counterID(f) + ":" + kind
	}
}
