package netserver

import (
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

// row assigns a body to a sender if it has all of some keys and any of
// others, and names what reads it: nothing if the sender is recognised only.
type row struct {
	sender Sender
	frame  readFrame                            // of an object, or of each item of a list
	parse  func(Post) ([]decoders.Frame, error) // of a body of another form
	list   bool                                 // of a list the first item is looked at
	all    keys
	any    keys // empty: no more is needed
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
		{sender: ChirpStackV4, parse: parseChirpStackV4, all: keyDeviceInfoDevEui, always: essentials{"data, object", "fPort", "time, rxInfo"}},
		{sender: ChirpStackV3, parse: parseChirpStackV3, all: keyApplicationID | keyDevEUI, always: essentials{"data, object, objectJSON", "fPort", "rxInfo.time, publishedAt"}},
		{sender: TheThingsStack, parse: parseTheThingsStack, all: keyEndDeviceIDs, always: essentials{"uplink_message.frm_payload, decoded_payload", "uplink_message.f_port", "uplink_message.received_at"}},
		{sender: TTNv2, frame: ttnV2Frame, all: keyDevID, any: keyHardwareSerial | keyPayloadRaw, always: essentials{"payload_raw, payload_fields", "port", "metadata.time"}},
		{sender: Helium, frame: heliumFrame, all: keyDevEuiSnake | keyAppEui, any: keyHotspots | keyReportedAt | keyUUID, always: essentials{"payload, decoded.payload", "port", "reported_at"}},
		{sender: ThingPark, parse: parseThingPark, any: keyDevEUIUnderscore | keyBSAlarm | keyDataDevEUI, always: essentials{"payload_hex, payload, points", "FPort", "Time"}},
		{sender: ThingPark, parse: parseThingPark, all: keyDevEUIUpper | keyPayloadHex, always: essentials{"payload_hex, payload, points", "FPort", "Time"}},
		{sender: LORIOT, frame: loriotFrame, all: keyCmd | keyEUI, always: essentials{"data", "port", "ts"}},
		{sender: CRA, parse: parseCRA, all: keyType | keyTech | keyDataText, always: essentials{"data", "port", "ts"}},
		{sender: Everynet, frame: everynetFrame, all: keyMeta | keyParams | keyType, always: essentials{"params.payload", "params.port", "params.rx_time"}},
		{sender: Kerlink, frame: kerlinkFrame, all: keyEndDeviceDevEui, always: essentials{"payload", "fPort", "recvTime, gwRecvTime"}},
		{sender: Monnit, parse: parseMonnit, any: keySensorMessages | keyGatewayMessage, always: essentials{"dataValue", "", "messageDate"}},
		{sender: MonnitRule, frame: monnitRuleFrame, all: keySubject | keyRule},
		{sender: Disruptive, frame: disruptiveFrame, all: keyEventEventType | keyEventTargetName, always: essentials{"", "", "event.timestamp"}},
		{sender: UbiBot, frame: ubibotFrame, all: keyChannelID | keyFeeds, always: essentials{"", "", "feeds.created_at"}},
		{sender: MilesightDP, frame: milesightFrame, all: keyEventType | keyDataDeviceProfile, always: essentials{"data.payload", "", "eventCreatedTime"}},
		{sender: MilesightDP, frame: milesightFrame, all: keyWebhookTest | keyEventVersion, always: essentials{"data.payload", "", "eventCreatedTime"}},
		{sender: AWSIoTCore, all: keyWirelessDeviceID | keyPayloadData},
		{sender: Sigfox, parse: parseSigfox, all: keySeqNumber, any: keyDevice | keyDeviceID | keyID, always: essentials{"data", "", "time"}},
		{sender: Generic, parse: parseGeneric},

		{sender: Netmore, frame: netmoreFrame, list: true, all: keyDevEui, any: keySensorType | keyMessageType, always: essentials{"payload", "fPort", "timestamp"}},
		{sender: KPN, parse: parseKPN, list: true, all: keyDevEUIURN, always: essentials{"payload", "port", "bt"}},
		{sender: SenML, parse: parseSenML, list: true, all: keyBn},
		{sender: SenML, parse: parseSenML, list: true, all: keyN, any: keyV | keyVs | keyVb | keyVd | keyS},
		{sender: MilesightDP, frame: milesightFrame, list: true, all: keyEventType | keyDataDeviceProfile, always: essentials{"data.payload", "", "eventCreatedTime"}},
		{sender: Generic, parse: parseGeneric, list: true},
	}
}

// detectShape returns the sender of the first row that matches.
func detectShape(s *shape) Sender {
	rows, list := table(), s.kind == jsonbody.Array
	for i := range rows {
		if r := &rows[i]; r.list == list && s.all(r.all) && (r.any == 0 || s.any(r.any)) {
			return r.sender
		}
	}
	return Generic
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
	return eachFrame(r.sender, p.Body, r.frame)
}
