// Package netserver reads what network servers and sensor vendors post and
// makes Frames of it.
//
// The sender is found by the shape of the body (Detect), never by the address
// it was posted to; each sender has one file that follows its own published
// format. Bodies are read tolerantly: an optional field of the wrong kind
// becomes a warning, an unknown field nothing. What a frame cannot do without,
// who sent it and what it carries, is a decoders.Error naming the field when
// it cannot be read. Protobuf is refused (ErrProtobuf), and a sender that is
// recognised but has no parser here is refused by name (UnsupportedError), so
// that its bodies are set aside instead of being misread as something else.
//
// What senders sign is checked by VerifyThingPark, VerifyDisruptive and
// VerifyKPN, which the receiver of a post calls before it believes it.
package netserver

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/penstock/penstock/decoders"
)

// Post is one request of a sender, as far as it matters here. Body is neither
// changed nor kept.
type Post struct {
	// Path is the last part of the address, as "lpwan": a hint for bodies
	// whose shape says nothing.
	Path        string
	Query       url.Values
	ContentType string
	// DeviceID is the device named by the address; it wins over an
	// identifier in a generic body.
	DeviceID string
	Body     []byte
	// ReceivedAt is what relative times in the body count from.
	ReceivedAt time.Time
}

// Sender names the network server or vendor that posted a body.
type Sender string

// The senders that are told apart.
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

// ErrProtobuf is returned for a body in protobuf; the sender can be set to
// JSON. Its answer is 415.
var ErrProtobuf = errors.New("netserver: protobuf bodies are not read, set the sender's encoding to JSON")

// UnsupportedError is returned for a body whose sender is recognised but has
// no parser.
type UnsupportedError struct{ Sender Sender }

// Error names the sender, and what can be done instead.
func (e *UnsupportedError) Error() string {
	text := fmt.Sprintf("netserver: bodies of sender %q have no parser", string(e.Sender))
	switch e.Sender {
	case AWSIoTCore:
		text += ": have the rule select the device and its values and post them to the generic webhook"
	case unknownForm:
		text += ": of forms only Sigfox's are read"
	case unknownDocument:
		text += ": of XML documents only ThingPark's are read"
	}
	return text
}

// maxFrames is how many frames one post may hold.
const maxFrames = 1000

// Parse reads the frames of a post. Frames may come together with an error:
// they are whole, the error is about the rest of the body.
//
// The error is ErrProtobuf, an *UnsupportedError, or a *decoders.Error.
func Parse(p Post) ([]decoders.Frame, error) {
	if isProtobuf(p) {
		return nil, ErrProtobuf
	}
	sender := Detect(p)
	parse := parserOf(sender)
	if parse == nil {
		return nil, &UnsupportedError{Sender: sender}
	}
	return parse(p)
}

// parserOf is the map from sender to parser: one line and one file for each.
func parserOf(s Sender) func(Post) ([]decoders.Frame, error) {
	switch s {
	case ChirpStackV4:
		return parseChirpStackV4
	case ChirpStackV3:
		return parseChirpStackV3
	case TheThingsStack:
		return parseTheThingsStack
	case TTNv2:
		return parseTTNv2
	case Helium:
		return parseHelium
	case ThingPark:
		return parseThingPark
	case LORIOT:
		return parseLORIOT
	case CRA:
		return parseCRA
	case Everynet:
		return parseEverynet
	case Kerlink:
		return parseKerlink
	case Netmore:
		return parseNetmore
	case SenML:
		return parseSenML
	case KPN:
		return parseKPN
	}
	return otherParserOf(s)
}

// otherParserOf is parserOf for what is no LoRaWAN network server.
func otherParserOf(s Sender) func(Post) ([]decoders.Frame, error) {
	switch s {
	case Sigfox:
		return parseSigfox
	case Monnit:
		return parseMonnit
	case MonnitRule:
		return parseMonnitRule
	case Disruptive:
		return parseDisruptive
	case UbiBot:
		return parseUbiBot
	case MilesightDP:
		return parseMilesight
	case Generic:
		return parseGeneric
	}
	return nil
}
