package netserver

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/penstock/penstock/decoders/jsonbody"
)

// Inspect checks that the body is whole and tells its sender, without reading
// its values: what a handler needs to choose its answer. The error is
// ErrProtobuf, or a syntax error (jsonbody.IsSyntax) when the body is neither
// JSON nor a form nor an XML document.
func Inspect(p Post) (Sender, error) {
	if isProtobuf(p) {
		return "", ErrProtobuf
	}
	if s, ok := detectOther(p); ok {
		return s, nil
	}
	s, err := scan(p.Body, false)
	if err != nil {
		return "", err
	}
	return detect(&s, p), nil
}

// Detect tells the sender of a body that Inspect has accepted. Whatever it
// cannot place is Generic.
func Detect(p Post) Sender {
	if s, ok := detectOther(p); ok {
		return s
	}
	s, _ := scan(p.Body, true)
	return detect(&s, p)
}

// detect goes by the shape. One that says nothing is Sigfox's if it names a
// device and came where its callbacks are sent: they have no seqNumber where
// they report an error.
func detect(s *shape, p Post) Sender {
	sender := detectShape(s)
	if sender == Generic && p.Path == lpwan && s.kind == jsonbody.Object && s.all(keyDevice) {
		return Sigfox
	}
	return sender
}

// lpwan is the Path of the low-power wide-area operators.
const lpwan = "lpwan"

// detectShape applies the tests in their order, which matters: later shapes
// are contained in earlier ones.
func detectShape(s *shape) Sender {
	if s.kind == jsonbody.Array {
		return detectList(s)
	}
	if lorawan := detectLoRaWAN(s); lorawan != "" {
		return lorawan
	}
	switch {
	case s.any(keySensorMessages | keyGatewayMessage):
		return Monnit
	case s.all(keySubject | keyRule):
		return MonnitRule
	case s.all(keyEventEventType | keyEventTargetName):
		return Disruptive
	case s.all(keyChannelID | keyFeeds):
		return UbiBot
	case s.all(keyEventType | keyDataDeviceProfile), s.webhookTest && s.all(keyEventVersion):
		return MilesightDP
	case s.all(keyWirelessDeviceID | keyPayloadData):
		return AWSIoTCore
	case s.all(keySeqNumber) && s.any(keyDevice|keyDeviceID|keyID):
		return Sigfox
	}
	return Generic
}

// detectLoRaWAN returns "" for what is no LoRaWAN network server's.
func detectLoRaWAN(s *shape) Sender {
	switch {
	case s.all(keyDeviceInfoDevEui):
		return ChirpStackV4
	case s.all(keyApplicationID | keyDevEUI):
		return ChirpStackV3
	case s.all(keyEndDeviceIDs):
		return TheThingsStack
	case s.all(keyDevID) && s.any(keyHardwareSerial|keyPayloadRaw):
		return TTNv2
	case s.all(keyDevEuiSnake|keyAppEui) && s.any(keyHotspots|keyReportedAt|keyUUID):
		return Helium
	case s.any(keyDevEUIUnderscore | keyBSAlarm | keyDataDevEUI), s.all(keyDevEUIUpper | keyPayloadHex):
		return ThingPark
	case s.all(keyCmd | keyEUI):
		return LORIOT
	case s.all(keyType|keyTech|keyData) && s.dataIsText:
		return CRA
	case s.all(keyMeta | keyParams | keyType):
		return Everynet
	case s.all(keyEndDeviceDevEui):
		return Kerlink
	}
	return ""
}

// detectList looks at the first item of a list.
func detectList(s *shape) Sender {
	switch {
	case s.all(keyDevEui) && s.any(keySensorType|keyMessageType):
		return Netmore
	case s.devEUIURN:
		return KPN
	case s.any(keyBn), s.all(keyN) && s.any(keyV|keyVs|keyVb|keyVd|keyS):
		return SenML
	case s.all(keyEventType | keyDataDeviceProfile):
		return MilesightDP
	}
	return Generic
}

// detectOther finds the senders that do not post JSON: Sigfox's forms and
// queries, ThingPark's XML.
func detectOther(p Post) (Sender, bool) {
	body := bytes.TrimLeft(p.Body, " \t\r\n\xef\xbb\xbf")
	if len(body) == 0 {
		return Sigfox, isSigfox(p.Query) || p.Path == lpwan && p.Query.Has("device")
	}
	if body[0] == '{' || body[0] == '[' {
		return "", false
	}
	if body[0] == '<' {
		if bytes.Contains(body, []byte("DevEUI_")) || bytes.Contains(body, []byte("BS_alarm")) {
			return ThingPark, true
		}
		return unknownDocument, true
	}
	form, err := url.ParseQuery(string(body))
	declared := strings.HasPrefix(p.ContentType, "application/x-www-form-urlencoded")
	switch {
	case err == nil && isSigfox(form): // a template may call itself plain text
		return Sigfox, true
	case declared && p.Path == lpwan:
		return Sigfox, true
	case declared:
		return unknownForm, true
	}
	return "", false
}

func isSigfox(q url.Values) bool {
	return q.Has("seqNumber") && (q.Has("device") || q.Has("deviceId") || q.Has("id"))
}

// isProtobuf tells a protobuf body by its declared type and by not being
// JSON after all.
func isProtobuf(p Post) bool {
	mime, _, _ := strings.Cut(p.ContentType, ";")
	switch strings.ToLower(strings.TrimSpace(mime)) {
	case "application/octet-stream", "application/protobuf", "application/x-protobuf", "application/vnd.google.protobuf":
	default:
		return false
	}
	body := bytes.TrimLeft(p.Body, " \t\r\n")
	return len(body) > 0 && body[0] != '{' && body[0] != '['
}
