package netserver

import (
	"encoding/hex"
	"net/url"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// chirpStackV3 reads the events of ChirpStack v3's HTTP integration
// (chirpstack-application-server internal/integration/marshaler): the JSON
// marshaler, whose EUIs are base64 and whose decoded object is a string, and
// JSON_V3, whose EUIs are hex. LoRaServer and Milesight's gateways post the
// latter with names of their own for the radio's part.
type chirpStackV3 struct {
	envelope
	implied  decoders.EventKind // what the keys seen say of the event
	acked    bool
	powered  bool
	failure  string // an error's type
	reason   string
	uplinkID string
	name     string // of an integration's event
	kind     string
	rawTime  string // the server's own time, as it stands
	server   time.Time
}

func parseChirpStackV3(p Post) ([]decoders.Frame, error) {
	c := chirpStackV3{envelope: newEnvelope(ChirpStackV3, p.Body)}
	var key []byte
	for ok := c.r.Object(); ok && c.r.Next(&key); {
		c.field(key)
	}
	c.complete(p.Query)
	return c.finish()
}

func (c *chirpStackV3) field(key []byte) {
	f := c.f
	switch string(key) {
	case "devEUI":
		c.devEUI()
	case "deviceName":
		f.Name = c.text("deviceName")
	case "applicationID":
		f.Application = c.text("applicationID")
	case "deviceProfileID":
		f.Profile.ID = c.text("deviceProfileID")
	case "deviceProfileName":
		f.Profile.Name = c.text("deviceProfileName")
	case "fCnt":
		f.FCnt, f.HasFCnt = c.integer("fCnt", 1<<32-1)
	case "fPort":
		c.hint(decoders.Uplink)
		n, ok := c.integer("fPort", 255)
		f.FPort, f.HasFPort = int(n), ok
	case "confirmedUplink":
		f.Confirmed = c.boolean("confirmedUplink")
	case "data":
		c.hint(decoders.Uplink)
		f.Payload = c.payload("data")
	case "object":
		f.Object = c.object("object")
	case "objectJSON":
		c.objectJSON()
	case "rxInfo":
		c.receptions(c.gateway)
	case "txInfo":
		c.txInfo()
	case "time", "publishedAt":
		c.serverTime(string(key))
	default:
		c.eventField(key)
	}
}

// eventField reads the fields of the events other than an uplink.
func (c *chirpStackV3) eventField(key []byte) {
	f := c.f
	switch string(key) {
	case "acknowledged":
		c.hint(decoders.Ack)
		c.acked = c.boolean("acknowledged")
	case "margin":
		c.hint(decoders.Status)
		f.Margin = c.margin("margin")
	case "batteryLevel":
		c.hint(decoders.Status)
		f.Battery = c.percent("batteryLevel")
	case "battery":
		f.Battery = c.loraBattery("battery")
	case "deviceStatusBattery":
		f.Battery = c.loraBattery("deviceStatusBattery")
	case "deviceStatusMargin":
		f.Margin = c.margin("deviceStatusMargin")
	case "externalPowerSource", "batteryLevelUnavailable":
		c.powered = c.flag() || c.powered
	case "type":
		c.failure = c.text("type")
	case "error":
		c.hint(decoders.Failure)
		c.reason = c.text("error")
	case "location":
		c.hint(decoders.Location)
		f.Position = c.where()
	case "gatewayID":
		c.hint(decoders.TxAck)
		f.Gateways = []decoders.Gateway{{ID: eui(c.r.Value())}}
	case "integrationName":
		c.hint(decoders.Service)
		c.name = c.text("integrationName")
	case "eventType":
		c.kind = c.text("eventType")
	default:
		c.r.Skip()
	}
}

// hint keeps the first kind of event that a key speaks for.
func (c *chirpStackV3) hint(k decoders.EventKind) {
	if c.implied == "" {
		c.implied = k
	}
}

// eui gives an EUI in lower-case hex, whichever of the marshalers wrote it.
func eui(v jsonbody.Value) string {
	s, _ := v.Text()
	if id, ok := decoders.NormalizeDevEUI(s); ok {
		return id
	}
	if b, ok := v.Base64(); ok && len(b) == 8 {
		return hex.EncodeToString(b)
	}
	return s
}

func (c *chirpStackV3) devEUI() {
	id, ok := decoders.NormalizeDevEUI(eui(c.r.Value()))
	if !ok {
		c.refuse("devEUI", "is neither 16 hex digits nor base64 of 8 bytes")
		return
	}
	c.f.Identifier, c.f.IsDevEUI = id, true
}

// objectJSON reads the decoded object, which this marshaler puts in a string.
func (c *chirpStackV3) objectJSON() {
	if c.r.Kind() == jsonbody.Object {
		c.f.Object = c.r.Map()
		return
	}
	object, ok := within(c.r.Value())
	if !ok {
		c.warn("objectJSON", "holds no object")
		return
	}
	c.f.Object = object
}

// margin of 256 is how the old server says that it is not known.
func (c *chirpStackV3) margin(field string) *float64 {
	n := c.number(field)
	if n == nil || *n > 255 {
		return nil
	}
	return n
}

// serverTime keeps a time that stands beside those of the gateways. Milesight's
// gateways write one that is malformed.
func (c *chirpStackV3) serverTime(field string) {
	v := c.r.Value()
	at, ok := anyTime(v)
	switch {
	case ok && c.server.IsZero():
		c.server = at
	case !ok && given(v) && c.f.TimeNote == "":
		c.f.TimeNote = field + ": is not a time: " + clip(v.Raw())
	}
	if c.rawTime == "" {
		c.rawTime = string(v.Raw())
	}
}

// complete names the event once all keys were seen.
func (c *chirpStackV3) complete(query url.Values) {
	f := c.f
	c.named("devEUI")
	f.Kind = c.event(query.Get("event"))
	switch f.Kind {
	case decoders.Failure:
		f.Text = c.failure + ": " + c.reason
	case decoders.Service:
		f.Text = c.name + " " + c.kind
	}
	if c.powered {
		f.Battery = nil
	}
	if f.NetworkTime = earliest(f.Gateways); f.NetworkTime.IsZero() {
		f.NetworkTime = c.server
	}
	c.dedup()
}

// dedup takes the reception's own identifier, where there is one, else the
// server's time or that of the gateways; without any it cannot be told.
func (c *chirpStackV3) dedup() {
	f := c.f
	count := strconv.FormatInt(f.FCnt, 10) + ":"
	switch {
	case c.uplinkID != "":
		f.DedupID = count + c.uplinkID + ":" + string(f.Kind)
	case c.rawTime != "":
		f.DedupID = count + c.rawTime + ":" + string(f.Kind)
	case f.HasFCnt && !f.NetworkTime.IsZero():
		f.DedupID = counted(f.FCnt, f.NetworkTime) + ":" + string(f.Kind)
	}
}

// counted tells a frame by its counter and the time the network gave it.
func counted(n int64, at time.Time) string {
	return strconv.FormatInt(n, 10) + ":" + strconv.FormatInt(at.UnixNano(), 10)
}

// event goes by the query and, without one, by the keys seen.
func (c *chirpStackV3) event(name string) decoders.EventKind {
	switch name {
	case "up":
		return decoders.Uplink
	case "join":
		return decoders.Join
	case "ack":
		return c.ack()
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
	case "":
		return c.eventByShape()
	}
	c.refuse("event", "is unknown: "+strconv.Quote(name[:min(len(name), 40)]))
	return ""
}

func (c *chirpStackV3) eventByShape() decoders.EventKind {
	switch {
	case c.implied == decoders.Ack:
		return c.ack()
	case c.implied != "":
		return c.implied
	case c.f.HasFCnt:
		return decoders.Uplink
	}
	return decoders.Join
}

func (c *chirpStackV3) ack() decoders.EventKind {
	if c.acked {
		return decoders.Ack
	}
	return decoders.Nack
}
