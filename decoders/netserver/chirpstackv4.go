package netserver

import (
	"net/url"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// chirpStackV4 reads the events of ChirpStack v4's HTTP integration
// (chirpstack api/proto/integration/integration.proto as protobuf JSON, which
// leaves out what is zero, false or empty). Hosted Helium posts the same.
type chirpStackV4 struct {
	envelope
	downlinkID string
	gatewayID  string                      // of a downlink that was sent
	implied    map[decoders.FrameKind]bool // what the keys seen say of the event
	queueItem  bool
	noBattery  bool
	acked      bool
	level      string
	code       string
	name, kind string // of an integration's event
	serverTime time.Time
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
		c.queueItem = c.text("queueItemId") != ""
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
		c.gatewayID = c.text("gatewayId")
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
	var nsTime time.Time // the server's own
	for key := range c.fieldsOf("rxInfo") {
		switch string(key) {
		case "gatewayId":
			g.ID = c.text("gatewayId")
		case "nsTime":
			nsTime = c.time("nsTime")
		case "gwTime", "time":
			if t := c.time(string(key)); g.Time.IsZero() || string(key) == "gwTime" {
				g.Time = t
			}
		default:
			c.gatewayField(key, &g, "rxInfo.location")
		}
	}
	if !nsTime.IsZero() && (c.serverTime.IsZero() || nsTime.Before(c.serverTime)) {
		c.serverTime = nsTime
	}
	if g.Time.IsZero() {
		g.Time = nsTime
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

// hint keeps a kind of event that the key of the next value speaks for. A null says
// nothing: some servers write the members of all events.
func (c *chirpStackV4) hint(k decoders.FrameKind) {
	if c.r.Kind() <= jsonbody.Null {
		return
	}
	if c.implied == nil {
		c.implied = make(map[decoders.FrameKind]bool)
	}
	c.implied[k] = true
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
	if c.gatewayID != "" && f.Kind == decoders.TxAck {
		f.Gateways = []decoders.Gateway{{ID: c.gatewayID}}
	}
	onlyOfEvent(f)
	c.setTime()
	c.dedup()
}

// setTime corrects the time, which the server takes from the first gateway that has a
// clock: one whose clock is wrong differs from the times at which the server received
// the frame.
func (c *chirpStackV4) setTime() {
	f := c.f
	if f.NetworkTime.IsZero() {
		f.NetworkTime = gatewayTime(f.Gateways, c.serverTime)
	} else if believed := believable(f.Gateways, c.serverTime, f.NetworkTime); !believed.Equal(f.NetworkTime) {
		disbelieve(f, "time", f.NetworkTime)
		f.NetworkTime = believed
	}
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

// eventByShape takes the first kind that a key speaks for, an uplink before all others.
func (c *chirpStackV4) eventByShape() decoders.FrameKind {
	for _, kind := range []decoders.FrameKind{
		decoders.Uplink, decoders.Ack, decoders.Status, decoders.Log, decoders.Location, decoders.TxAck, decoders.Service,
	} {
		switch {
		case !c.implied[kind]:
		case kind == decoders.Ack:
			return c.ack()
		default:
			return kind
		}
	}
	if c.queueItem {
		return c.ack()
	}
	return decoders.Join
}

func (c *chirpStackV4) ack() decoders.FrameKind {
	if c.acked {
		return decoders.Ack
	}
	return decoders.Nack
}
