package netserver

import (
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// helium reads what Helium's Console posts (docs.helium.com, HTTP integration,
// JSON schema). Its bodies are templates, so numbers may be strings and lists
// may be missing. The downlink_url is a credential and is never kept.
type helium struct {
	envelope
	kind     string
	reported time.Time
}

func parseHelium(p Post) ([]decoders.Frame, error) {
	h := helium{envelope: newEnvelope(Helium, p.Body)}
	var key []byte
	for ok := h.r.Object(); ok && h.r.Next(&key); {
		h.field(key)
	}
	h.complete()
	return h.finish()
}

func (h *helium) field(key []byte) {
	f := h.f
	switch string(key) {
	case "type":
		h.kind = h.text("type")
	case "uuid":
		f.DedupID = h.text("uuid")
	case "name":
		f.Name = h.text("name")
	case "dev_eui":
		h.device("dev_eui")
	case "fcnt":
		f.FCnt, f.HasFCnt = h.integer("fcnt", 1<<32-1)
	case "port":
		n, ok := h.integer("port", 255)
		f.FPort, f.HasFPort = int(n), ok
	case "payload":
		f.Payload = h.payload("payload")
	case "reported_at":
		h.reported = h.instant("reported_at")
	case "hotspots":
		h.gateways(h.hotspot)
	case "metadata":
		h.metadata()
	case "decoded":
		h.decoded()
	default:
		h.r.Skip()
	}
}

// hotspot reads a reception; the radio's data are the same in all of them.
func (h *helium) hotspot() (g decoders.Gateway) {
	var key []byte
	var lat, lon *float64
	for ok := h.r.Object(); ok && h.r.Next(&key); {
		switch string(key) {
		case "id":
			g.ID = h.text("hotspots.id")
		case "rssi":
			g.RSSI = h.number("hotspots.rssi")
		case "snr":
			g.SNR = h.number("hotspots.snr")
		case "reported_at":
			g.Time = h.instant("hotspots.reported_at")
		case "frequency":
			h.f.FrequencyHz = h.frequency("hotspots.frequency")
		case "spreading":
			h.dataRate("hotspots.spreading")
		case "lat":
			lat = h.coordinate()
		case "long":
			lon = h.coordinate()
		default:
			h.r.Skip()
		}
	}
	g.Position = place(lat, lon, nil)
	return g
}

func (h *helium) metadata() {
	var key []byte
	for ok := h.r.Object(); ok && h.r.Next(&key); {
		if string(key) == "organization_id" {
			h.f.Application = h.text("metadata.organization_id")
		} else {
			h.r.Skip()
		}
	}
}

// decoded reads what the Console's function made of the payload.
func (h *helium) decoded() {
	var key []byte
	for ok := h.r.Object(); ok && h.r.Next(&key); {
		switch {
		case string(key) == "payload" && h.r.Kind() == jsonbody.Object:
			h.f.Object = h.object("decoded.payload")
		case string(key) == "error":
			if s := h.text("decoded.error"); s != "" {
				h.warn("decoded", s)
			}
		default:
			h.r.Skip()
		}
	}
}

func (h *helium) complete() {
	f := h.f
	h.named("dev_eui")
	f.Kind = decoders.Uplink
	if h.kind == "join" {
		f.Kind = decoders.Join
	}
	if f.NetworkTime = h.reported; f.NetworkTime.IsZero() {
		f.NetworkTime = earliest(f.Gateways)
	}
	switch {
	case f.DedupID != "":
	case f.HasFCnt && !f.NetworkTime.IsZero():
		f.DedupID = counted(f.FCnt, f.NetworkTime)
	case !f.NetworkTime.IsZero():
		f.DedupID = strconv.FormatInt(f.NetworkTime.UnixMilli(), 10)
	}
}
