// Package netserver reads what network servers and sensor vendors post and
// makes Frames of it.
//
// The sender is found by the shape of the body (Detect); only for Sigfox does the
// webhook that it was posted to count as well. Each sender has a row in the table of
// senders (senders.go) and a file that follows its own published format; the two versions
// of The Things Network share tts.go, and what senders sign is in signature.go. Bodies are read tolerantly: an
// optional field of the wrong kind becomes a warning, an unknown field nothing.
// What a frame cannot do without, who sent it and what it carries, is a
// decoders.Error naming the field when it cannot be read. Protobuf is refused
// (ErrProtobuf), and a sender that is recognised but has no parser here is
// refused by name (UnsupportedError), so that its bodies are quarantined instead
// of being misread as something else.
//
// Every sender's fields are read by their paths (document).
//
// What senders sign is checked by VerifyThingPark, VerifyDisruptive and VerifyKPN, which the
// receiver of a post calls before it accepts it.
package netserver

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders"
)

// Post is one request of a sender, as far as it matters here. Body is neither
// changed nor kept.
type Post struct {
	// Path is the name of the webhook, such as "lpwan": a hint for bodies whose shape
	// is ambiguous.
	Path        string
	Query       url.Values
	ContentType string
	// DeviceID is the device named by the address; it wins over an
	// identifier in a generic body.
	DeviceID string
	Body     []byte
	// Sender is Inspect's result; empty to detect the sender again.
	Sender Sender
	// ReceivedAt is the time from which relative times in the body count.
	ReceivedAt time.Time
}

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

// maxFrames is the largest number of frames that one post may hold, or records of a SenML
// pack.
const maxFrames = 1000

// ErrTooMany is returned for a post of more frames than are read. Its answer is
// 413: what is not read must not be acknowledged.
var ErrTooMany = fmt.Errorf("a post may hold at most %d frames", maxFrames)

// Parse reads the frames of a post. Frames may come together with an error:
// they are whole, the error is about the rest of the body.
//
// The error is ErrProtobuf, an *UnsupportedError, or a *decoders.Error.
func Parse(p Post) ([]decoders.Frame, error) {
	if isProtobuf(p) {
		return nil, ErrProtobuf
	}
	sender := p.Sender
	row := rowOf(sender)
	if !row.isRead() {
		sender = Detect(p)
		row = rowOf(sender)
	}
	if !row.isRead() {
		return nil, &UnsupportedError{Sender: sender}
	}
	frames, err := row.read(p)
	if sender == Generic {
		return frames, err
	}
	for i := range frames {
		f, always := &frames[i], row.always
		if len(f.Payload) == 0 && !hasValues(f.Object) {
			f.Object = nil
		}
		// Note the essential members that an uplink lacks.
		if f.Kind != decoders.Uplink || f.Supplement {
			continue
		}
		if always.payload != "" && len(f.Payload) == 0 && f.Object == nil && len(f.Samples) == 0 {
			f.Warnings = append(f.Warnings, always.payload+": missing or empty")
		}
		if always.port != "" && len(f.Payload) > 0 && f.FPort == 0 {
			f.Warnings = append(f.Warnings, always.port+": missing or 0")
		}
		if always.time != "" && f.SampleTime.IsZero() && f.NetworkTime.IsZero() && f.TimeNote == "" {
			f.TimeNote = always.time + ": missing"
		}
	}
	return frames, err
}

// formatJSON is the Format of errors about bodies that are not JSON.
const formatJSON = "json"

// isSyntax reports whether err is that of a body that is not JSON.
func isSyntax(err error) bool {
	e, ok := errors.AsType[*decoders.Error](err)
	return ok && e.Format == formatJSON
}

// hasValues reports whether there is more than null within objects and lists.
func hasValues(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case map[string]any:
		for _, x := range v {
			if hasValues(x) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(v, hasValues)
	}
	return true
}
