package netserver

import (
	"net/url"
	"strconv"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// chirpStackV4 reads the events of ChirpStack v4's HTTP integration
// (chirpstack api/proto/integration/integration.proto as protobuf JSON, which
// leaves out what is zero, false or empty). Hosted Helium posts the same.
type chirpStackV4 struct {
	envelope
	downlinkID string
	implied    decoders.FrameKind // what the keys seen say of the event
	queueItem  bool
	noBattery  bool
	acked      bool
	level      string
	code       string
	name, kind string // of an integration's event
}

func parseChirpStackV4(p Post) ([]decoders.Frame, error) {
	c := chirpStackV4{envelope: newEnvelope(ChirpStackV4, p.Body)}
	for key := range c.r.Fields() {
		c.field(key)
	}
	c.complete(p.Query)
	return c.finish()
}

func (c *chirpStackV4) field(key []byte) {
	f := c.f
	switch string(key) {
	case "deduplicationId":
		f.DedupID = c.text("deduplicationId")
	case "time":
		f.NetworkTime = c.time("time")
	case "deviceInfo":
		c.deviceInfo()
	case "fCnt":
		f.FCnt, f.HasFCnt = c.count("fCnt", 1<<32-1)
	case "fPort":
		c.hint(decoders.Uplink)
		n, ok := c.count("fPort", 255)
		f.FPort, f.HasFPort = int(n), ok
	case "confirmed":
		f.Confirmed = c.boolean("confirmed")
	case "data":
		c.hint(decoders.Uplink)
		f.Payload = c.payload("data")
	case "object":
		f.Object = c.object("object")
	case "joinServerContext":
		f.Encrypted = false
		for range c.r.Fields() {
			f.Encrypted = true // unless it is empty
		}
	case "rxInfo":
		c.receptions(c.gateway)
	case "txInfo":
		c.txInfo()
	default:
		c.eventField(key)
	}
}

// eventField reads the fields of the events other than an uplink.
func (c *chirpStackV4) eventField(key []byte) {
	f := c.f
	switch string(key) {
	case "queueItemId":
		c.queueItem = true
	case "acknowledged":
		c.hint(decoders.Ack)
		c.acked = c.boolean("acknowledged")
	case "batteryLevel":
		c.hint(decoders.Status)
		f.Battery = c.number("batteryLevel")
	case "margin":
		c.hint(decoders.Status)
		f.Margin = c.number("margin")
	case "externalPowerSource", "batteryLevelUnavailable":
		if c.boolean(string(key)) {
			c.noBattery = true
		}
	case "level":
		c.level = c.text("level")
	case "code":
		c.hint(decoders.Log)
		c.code = c.text("code")
	case "description":
		f.Text = c.text("description")
	case "location":
		c.hint(decoders.Location)
		f.Position = c.position("location")
	case "downlinkId":
		c.hint(decoders.TxAck)
		c.downlinkID = c.text("downlinkId")
	case "gatewayId":
		f.Gateways = []decoders.Gateway{{ID: c.text("gatewayId")}}
	case "integrationName":
		c.hint(decoders.Service)
		c.name = c.text("integrationName")
	case "eventType":
		c.kind = c.text("eventType")
	}
}

func (c *chirpStackV4) deviceInfo() {
	f := c.f
	for key := range c.fieldsOf("deviceInfo") {
		switch string(key) {
		case "devEui":
			f.Identifier = c.r.Value().String()
		case "deviceName":
			f.Name = c.text("deviceName")
		case "applicationId":
			f.Application = c.text("applicationId")
		case "deviceProfileId":
			f.Profile.ID = c.text("deviceProfileId")
		case "deviceProfileName":
			f.Profile.Name = c.text("deviceProfileName")
		}
	}
}

// gateway reads one entry of rxInfo. Of its times gwTime, the gateway's own,
// is preferred.
func (c *chirpStackV4) gateway() (g decoders.Gateway) {
	for key := range c.fieldsOf("rxInfo") {
		switch string(key) {
		case "gatewayId":
			g.ID = c.text("gatewayId")
		case "gwTime", "nsTime", "time":
			if t := c.time(string(key)); g.Time.IsZero() || string(key) == "gwTime" {
				g.Time = t
			}
		default:
			c.gatewayField(key, &g, "rxInfo.location")
		}
	}
	return g
}

func (c *chirpStackV4) txInfo() {
	for key := range c.fieldsOf("txInfo") {
		switch string(key) {
		case "frequency":
			c.frequency()
		case "modulation":
			for key := range c.r.Fields() {
				if string(key) == "lora" {
					c.lora("txInfo.modulation.lora", "spreadingFactor")
				}
			}
		}
	}
}

// hint keeps the first kind of event that a key speaks for.
func (c *chirpStackV4) hint(k decoders.FrameKind) {
	if c.implied == "" {
		c.implied = k
	}
}

// count is integer with null standing for the zero that protobuf leaves out, and
// -1 for a value that cannot be read.
func (c *chirpStackV4) count(field string, limit int64) (int64, bool) {
	if c.r.Kind() == jsonbody.Null {
		return 0, true
	}
	n, ok := c.integer(field, limit)
	if !ok {
		return -1, false
	}
	return n, true
}

// complete names the device and the event once all keys were seen.
func (c *chirpStackV4) complete(query url.Values) {
	f := c.f
	eui, ok := decoders.NormalizeDevEUI(f.Identifier)
	if !ok {
		c.refuse("deviceInfo.devEui", notDevEUI)
	}
	f.Identifier, f.IsDevEUI = eui, true
	f.Kind = c.event(query.Get("event"))
	switch f.Kind {
	case decoders.Uplink:
		// Protobuf leaves out a port and a counter of zero; -1 is unreadable.
		f.HasFPort, f.HasFCnt = f.FPort >= 0, f.FCnt >= 0
	case decoders.Log:
		f.Text = c.level + " " + c.code + ": " + f.Text
	case decoders.Service:
		f.Text = c.name + " " + c.kind
	}
	f.FPort, f.FCnt = max(f.FPort, 0), max(f.FCnt, 0)
	if c.noBattery {
		f.Battery = nil
	}
	f.NetworkTime = firstTime(f.NetworkTime, earliest(f.Gateways))
	c.dedup()
}

// dedup makes the identifier the event's own: a device's uplink, its status
// and the log line about it share one deduplicationId.
func (c *chirpStackV4) dedup() {
	f := c.f
	switch {
	case f.DedupID != "":
		f.DedupID += ":" + string(f.Kind)
	case c.downlinkID != "":
		f.DedupID = "downlink-" + c.downlinkID + ":" + string(f.Kind)
	}
}

// event takes the event from the query or else from the keys seen.
func (c *chirpStackV4) event(name string) decoders.FrameKind {
	kind := chirpStackEvent(name)
	switch {
	case name == "":
		return c.eventByShape()
	case name == "log":
		return decoders.Log
	case kind == decoders.Ack:
		return c.ack()
	case kind == "":
		c.refuse("event", unknownEvent(name))
	}
	return kind
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

func (c *chirpStackV4) eventByShape() decoders.FrameKind {
	switch {
	case c.implied == decoders.Ack, c.implied == "" && c.queueItem:
		return c.ack()
	case c.implied == "":
		return decoders.Join
	}
	return c.implied
}

func (c *chirpStackV4) ack() decoders.FrameKind {
	if c.acked {
		return decoders.Ack
	}
	return decoders.Nack
}
