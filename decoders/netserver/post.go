// Package netserver parses the webhooks of network servers and sensor vendors into Frames.
//
// Inspect checks a post before it is accepted, and detects the sender by the shape of the body,
// Sigfox also by the address of the webhook; Parse reads the frames. Each sender has a row in the
// table of senders (senders.go) with its parser, which follows the sender's published format;
// similar senders share a file. Parsers read the members of the body by their paths (document).
//
// Parsing is tolerant: an optional member of the wrong kind becomes a warning, and unknown
// members are ignored. If the device or the payload cannot be read, the error is a
// decoders.Error that names the member. Protobuf is refused (ErrProtobuf). A sender that is
// recognised but has no parser is refused by name (UnsupportedError), so that its bodies are
// quarantined instead of being taken for another sender's.
//
// VerifyThingPark, VerifyDisruptive and VerifyKPN check signatures. The receiver of a post
// calls them before it accepts the post.
package netserver

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders"
)

// Post is one request of a sender. Body is neither modified nor retained.
type Post struct {
	// Path is the name of the webhook, such as "lpwan". If the shape of the body is ambiguous,
	// Path determines the sender.
	Path        string
	Query       url.Values
	ContentType string
	// DeviceID is the device in the address. It has precedence over the
	// identifier in a generic body.
	DeviceID string
	Body     []byte
	// Sender is Inspect's result; empty to detect the sender again.
	Sender Sender
	// ReceivedAt is the reference of relative times in the body.
	ReceivedAt time.Time
}

// ErrProtobuf is returned for a body in protobuf. The HTTP status is 415.
var ErrProtobuf = errors.New("netserver: protobuf bodies are not read, set the sender's encoding to JSON")

// UnsupportedError is returned for a body whose sender is recognised but has
// no parser.
type UnsupportedError struct{ Sender Sender }

// Error names the sender and, if there is one, an alternative.
func (e *UnsupportedError) Error() string {
	text := fmt.Sprintf("netserver: bodies of sender %q are not supported", string(e.Sender))
	switch e.Sender {
	case AWSIoTCore:
		text += ": have the rule select the device and its values and post them to the generic webhook"
	case unknownForm:
		text += ": only the forms of Sigfox are read"
	case unknownDocument:
		text += ": only the XML documents of ThingPark are read"
	}
	return text
}

// maxFrames is the largest number of frames of one post, and of records of a SenML pack.
const maxFrames = 1000

// ErrTooMany is returned for a post of too many frames. The HTTP status is
// 413, because frames that are not read must not be acknowledged.
var ErrTooMany = fmt.Errorf("a post may hold at most %d frames", maxFrames)

// Parse parses the frames of a post. The error is ErrProtobuf, an *UnsupportedError, or a
// *decoders.Error. Frames that are returned with an error are complete; the error is about
// the other frames of the body.
func Parse(p Post) ([]decoders.Frame, error) {
	if isProtobuf(p) {
		return nil, ErrProtobuf
	}
	sender := p.Sender
	row := rowOf(sender)
	if !row.hasParser() {
		sender = Detect(p)
		row = rowOf(sender)
	}
	if !row.hasParser() {
		return nil, &UnsupportedError{Sender: sender}
	}
	frames, err := row.read(p)
	if sender == Generic {
		return frames, err
	}
	for i := range frames {
		f, essential := &frames[i], row.essential
		if len(f.Payload) == 0 && !hasValues(f.Object) {
			f.Object = nil
		}
		// Note the essential members that an uplink lacks.
		if f.Kind != decoders.Uplink || f.Supplement {
			continue
		}
		if essential.payload != "" && len(f.Payload) == 0 && f.Object == nil && len(f.Samples) == 0 {
			f.Warnings = append(f.Warnings, essential.payload+": missing or empty")
		}
		if essential.port != "" && len(f.Payload) > 0 && f.FPort == 0 {
			f.Warnings = append(f.Warnings, essential.port+": missing or 0")
		}
		if essential.time != "" && f.SampleTime.IsZero() && f.NetworkTime.IsZero() && f.TimeNote == "" {
			f.TimeNote = essential.time + ": missing"
		}
	}
	return frames, err
}

// formatJSON is the Format of errors about bodies that are not valid JSON.
const formatJSON = "json"

// isSyntax reports whether err is about a body that is not valid JSON.
func isSyntax(err error) bool {
	e, ok := errors.AsType[*decoders.Error](err)
	return ok && e.Format == formatJSON
}

// hasValues reports whether v has a value other than null within its objects and lists.
func hasValues(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hasValues)
	case []any:
		return slices.ContainsFunc(v, hasValues)
	}
	return v != nil
}
