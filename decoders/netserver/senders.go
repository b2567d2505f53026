package netserver

import (
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// Sender names the network server or vendor that posted a body.
type Sender string

// The senders that Detect recognises.
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

// row describes one shape of a sender's bodies and has its parser, frame or parse. Both are nil if
// the sender is recognised but its bodies are not read.
type row struct {
	sender Sender
	frame  frameReader                          // parses an object, or each item of a list
	parse  func(Post) ([]decoders.Frame, error) // parses bodies of any other form
	// A body has this shape if it has all paths (separated by blanks) and meets the condition
	// (if that is not nil). isList selects bodies that are lists; their first item is examined.
	isList    bool
	paths     string
	condition func(document) bool
	essential essentials
}

// essentials names the members of an uplink whose absence loses or changes readings. A name is
// empty if the sender may leave the member out.
type essentials struct{ payload, port, time string }

// table returns the rows in the order in which Detect tries them. The order matters because
// some shapes include others. A sender with several shapes has several rows.
func table() [26]row {
	return [...]row{
		{sender: ChirpStackV4, frame: readChirpStackV4Frame, paths: "deviceInfo.devEui", essential: essentials{"data, object", "fPort", "time, rxInfo"}},
		{sender: ChirpStackV3, frame: readChirpStackV3Frame, paths: "applicationID devEUI", essential: essentials{"data, object, objectJSON", "fPort", "rxInfo.time, publishedAt"}},
		{sender: TheThingsStack, frame: readTheThingsStackFrame, paths: "end_device_ids", essential: essentials{"uplink_message.frm_payload, decoded_payload", "uplink_message.f_port", "uplink_message.received_at"}},
		{sender: TTNv2, frame: readTtnV2Frame, paths: "dev_id hardware_serial|payload_raw", essential: essentials{"payload_raw, payload_fields", "port", "metadata.time"}},
		{sender: Helium, frame: readHeliumFrame, paths: "dev_eui app_eui hotspots|reported_at|uuid", essential: essentials{"payload, decoded.payload", "port", "reported_at"}},
		{sender: ThingPark, parse: parseThingPark, condition: isThingPark, essential: essentials{"payload_hex, payload, points", "FPort", "Time"}},
		{sender: ThingPark, parse: parseThingPark, paths: "DevEUI payload_hex", essential: essentials{"payload_hex, payload, points", "FPort", "Time"}},
		{sender: LORIOT, frame: readLoriotFrame, paths: "cmd EUI", essential: essentials{"data", "port", "ts"}},
		{sender: CRA, parse: parseCRA, paths: "type tech data", condition: isEnvelope, essential: essentials{"data", "port", "ts"}},
		{sender: Everynet, frame: readEverynetFrame, paths: "meta params type", essential: essentials{"params.payload", "params.port", "params.rx_time"}},
		{sender: Kerlink, frame: readKerlinkFrame, paths: "endDevice.devEui", essential: essentials{"payload", "fPort", "recvTime, gwRecvTime"}},
		{sender: Monnit, parse: parseMonnit, paths: "sensorMessages|gatewayMessage", essential: essentials{"dataValue", "", "messageDate"}},
		{sender: MonnitRule, frame: readMonnitRuleFrame, paths: "subject rule"},
		{sender: Disruptive, frame: readDisruptiveFrame, paths: "event.eventType event.targetName", essential: essentials{"", "", "event.timestamp"}},
		{sender: UbiBot, frame: readUbibotFrame, paths: "channel_id feeds", essential: essentials{"", "", "feeds.created_at"}},
		{sender: MilesightDP, frame: readMilesightFrame, paths: "eventType data.deviceProfile", essential: essentials{"data.payload", "", "eventCreatedTime"}},
		{sender: MilesightDP, frame: readMilesightFrame, paths: "eventVersion", condition: isWebhookTest, essential: essentials{"data.payload", "", "eventCreatedTime"}},
		{sender: AWSIoTCore, paths: "WirelessDeviceId PayloadData"},
		{sender: Sigfox, parse: parseSigfox, paths: "seqNumber device|deviceId|id", essential: essentials{"data", "", "time"}},
		{sender: Generic, frame: readGenericFrame},

		{sender: Netmore, frame: readNetmoreFrame, isList: true, paths: "devEui sensorType|messageType", essential: essentials{"payload", "fPort", "timestamp"}},
		{sender: KPN, parse: parseKPN, isList: true, condition: namesDevEUI, essential: essentials{"payload", "port", "bt"}},
		{sender: SenML, parse: parseSenML, isList: true, paths: "bn"},
		{sender: SenML, parse: parseSenML, isList: true, paths: "n v|vs|vb|vd|s"},
		{sender: MilesightDP, frame: readMilesightFrame, isList: true, paths: "eventType data.deviceProfile", essential: essentials{"data.payload", "", "eventCreatedTime"}},
		{sender: Generic, frame: readGenericFrame, isList: true},
	}
}

// senderOf returns the sender of the first row that matches.
func senderOf(d document, isList bool) Sender {
	rows := table()
	for i := range rows {
		if r := &rows[i]; r.isList == isList && r.matches(d) {
			return r.sender
		}
	}
	return Generic
}

func (r *row) matches(d document) bool {
	for path := range strings.FieldsSeq(r.paths) {
		if !d.Has(path) {
			return false
		}
	}
	return r.condition == nil || r.condition(d)
}

// isThingPark recognises the wrappers of Actility (DevEUI_uplink and others) and of Swisscom.
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

// rowOf returns the first row of a sender, or an empty row if the sender is unknown.
func rowOf(s Sender) row {
	rows := table()
	for i := range rows {
		if rows[i].sender == s {
			return rows[i]
		}
	}
	return row{}
}

func (r *row) hasParser() bool { return r.frame != nil || r.parse != nil }

func (r *row) read(p Post) ([]decoders.Frame, error) {
	if r.parse != nil {
		return r.parse(p)
	}
	return eachFrame(r.sender, &p, p.Body, r.frame)
}
