package netserver

import (
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// Sender names the network server or vendor that posted a body.
type Sender string

// The senders that the table recognises.
const (
	ChirpStackV4    Sender = "chirpstack-v4"
	ChirpStackV3    Sender = "chirpstack-v3" // also LoRaServer and Milesight gateways
	TheThingsStack  Sender = "tts-v3"
	TTNv2           Sender = "ttn-v2"
	Helium          Sender = "helium-console"
	ThingPark       Sender = "thingpark" // also KPN's flat form and Swisscom
	LORIOT          Sender = "loriot"
	CRA             Sender = "cra-envelope"
	Everynet        Sender = "everynet"
	Netmore         Sender = "netmore"
	SenML           Sender = "senml"
	KPN             Sender = "kpn-things-senml"
	Kerlink         Sender = "kerlink-wanesy"
	Monnit          Sender = "monnit"
	MonnitRule      Sender = "monnit-rule" // an alert, not a reading
	Disruptive      Sender = "disruptive-technologies"
	UbiBot          Sender = "ubibot"
	MilesightDP     Sender = "milesight-development-platform"
	AWSIoTCore      Sender = "aws-iot-core"
	Sigfox          Sender = "sigfox"
	Generic         Sender = "generic"
	unknownForm     Sender = "form"
	unknownDocument Sender = "xml"
)

// row assigns a body to a sender and names what reads it: nothing if the sender is
// recognised only.
type row struct {
	sender Sender
	frame  readFrame                            // of an object, or of each item of a list
	parse  func(Post) ([]decoders.Frame, error) // of a body of another form
	list   bool                                 // of a list the first item is examined
	text   string                               // the paths that the body has, separated by blanks
	also   func(document) bool                  // nil: no more is needed
	// always are the members that the sender writes in each uplink.
	always essentials
}

// essentials names the members of an uplink without which its readings are lost or
// different: the payload or what stands for it, the port and the time. An empty name is
// a member that the sender may leave out.
type essentials struct{ payload, port, time string }

// table has the rows in the order in which they are tried, which matters: later
// shapes are contained in earlier ones. A sender with several shapes has several.
func table() [26]row {
	return [...]row{
		{sender: ChirpStackV4, frame: chirpStackV4Frame, text: "deviceInfo.devEui", always: essentials{"data, object", "fPort", "time, rxInfo"}},
		{sender: ChirpStackV3, frame: chirpStackV3Frame, text: "applicationID devEUI", always: essentials{"data, object, objectJSON", "fPort", "rxInfo.time, publishedAt"}},
		{sender: TheThingsStack, frame: theThingsStackFrame, text: "end_device_ids", always: essentials{"uplink_message.frm_payload, decoded_payload", "uplink_message.f_port", "uplink_message.received_at"}},
		{sender: TTNv2, frame: ttnV2Frame, text: "dev_id hardware_serial|payload_raw", always: essentials{"payload_raw, payload_fields", "port", "metadata.time"}},
		{sender: Helium, frame: heliumFrame, text: "dev_eui app_eui hotspots|reported_at|uuid", always: essentials{"payload, decoded.payload", "port", "reported_at"}},
		{sender: ThingPark, parse: parseThingPark, also: isThingPark, always: essentials{"payload_hex, payload, points", "FPort", "Time"}},
		{sender: ThingPark, parse: parseThingPark, text: "DevEUI payload_hex", always: essentials{"payload_hex, payload, points", "FPort", "Time"}},
		{sender: LORIOT, frame: loriotFrame, text: "cmd EUI", always: essentials{"data", "port", "ts"}},
		{sender: CRA, parse: parseCRA, text: "type tech data", also: isEnvelope, always: essentials{"data", "port", "ts"}},
		{sender: Everynet, frame: everynetFrame, text: "meta params type", always: essentials{"params.payload", "params.port", "params.rx_time"}},
		{sender: Kerlink, frame: kerlinkFrame, text: "endDevice.devEui", always: essentials{"payload", "fPort", "recvTime, gwRecvTime"}},
		{sender: Monnit, parse: parseMonnit, text: "sensorMessages|gatewayMessage", always: essentials{"dataValue", "", "messageDate"}},
		{sender: MonnitRule, frame: monnitRuleFrame, text: "subject rule"},
		{sender: Disruptive, frame: disruptiveFrame, text: "event.eventType event.targetName", always: essentials{"", "", "event.timestamp"}},
		{sender: UbiBot, frame: ubibotFrame, text: "channel_id feeds", always: essentials{"", "", "feeds.created_at"}},
		{sender: MilesightDP, frame: milesightFrame, text: "eventType data.deviceProfile", always: essentials{"data.payload", "", "eventCreatedTime"}},
		{sender: MilesightDP, frame: milesightFrame, text: "eventVersion", also: isWebhookTest, always: essentials{"data.payload", "", "eventCreatedTime"}},
		{sender: AWSIoTCore, text: "WirelessDeviceId PayloadData"},
		{sender: Sigfox, parse: parseSigfox, text: "seqNumber device|deviceId|id", always: essentials{"data", "", "time"}},
		{sender: Generic, frame: genericFrame},

		{sender: Netmore, frame: netmoreFrame, list: true, text: "devEui sensorType|messageType", always: essentials{"payload", "fPort", "timestamp"}},
		{sender: KPN, parse: parseKPN, list: true, also: namesDevEUI, always: essentials{"payload", "port", "bt"}},
		{sender: SenML, parse: parseSenML, list: true, text: "bn"},
		{sender: SenML, parse: parseSenML, list: true, text: "n v|vs|vb|vd|s"},
		{sender: MilesightDP, frame: milesightFrame, list: true, text: "eventType data.deviceProfile", always: essentials{"data.payload", "", "eventCreatedTime"}},
		{sender: Generic, frame: genericFrame, list: true},
	}
}

// senderOf returns the sender of the first row that matches.
func senderOf(d document, list bool) Sender {
	rows := table()
	for i := range rows {
		if r := &rows[i]; r.list == list && r.matches(d) {
			return r.sender
		}
	}
	return Generic
}

func (r *row) matches(d document) bool {
	for path := range strings.FieldsSeq(r.text) {
		if !d.Has(path) {
			return false
		}
	}
	return r.also == nil || r.also(d)
}

// isThingPark recognises a wrapper: a document of any name, or Swisscom's.
func isThingPark(d document) bool {
	for key := range d.Keys() {
		if strings.HasPrefix(key, "DevEUI_") {
			return true
		}
	}
	return d.Has("BS_alarm|data.DevEUI")
}

func isEnvelope(d document) bool    { return d.Kind("data") == jsonbody.String }
func isWebhookTest(d document) bool { return d.Value("eventType").String() == "WEBHOOK_TEST" }
func namesDevEUI(d document) bool {
	return strings.HasPrefix(d.Value("bn").String(), "urn:dev:DEVEUI:")
}

// rowOf returns the row of a sender, an empty one for a sender that is not known.
func rowOf(s Sender) row {
	rows := table()
	for i := range rows {
		if rows[i].sender == s {
			return rows[i]
		}
	}
	return row{}
}

func (r *row) isRead() bool { return r.frame != nil || r.parse != nil }

func (r *row) read(p Post) ([]decoders.Frame, error) {
	if r.parse != nil {
		return r.parse(p)
	}
	return eachFrame(r.sender, &p, p.Body, r.frame)
}
