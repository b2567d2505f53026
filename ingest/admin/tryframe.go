package admin

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// TryFrame is a frame to try: a payload, values that were decoded already, or
// what a sender posts, whole.
type TryFrame struct {
	Hex    string         `json:"hex,omitempty"`
	Base64 string         `json:"base64,omitempty"`
	Values map[string]any `json:"values,omitempty"`
	FPort  *int           `json:"fPort,omitempty"`
	FCnt   *int64         `json:"fCnt,omitempty"`
	Time   string         `json:"time,omitempty"` // RFC 3339; of a body, when it was received

	// Body is the body of a sender's post: JSON as it is, anything else as a text.
	Body        json.RawMessage `json:"body,omitempty"`
	ContentType string          `json:"content_type,omitempty"`
	Path        string          `json:"path,omitempty"`  // lorawan, lpwan, …; a hint
	Query       string          `json:"query,omitempty"` // of the address: event=up
}

// check adds the problems of a frame.
func (f *TryFrame) check(p relay.Problems, name string) {
	n := 0
	for _, ok := range []bool{f.Hex != "", f.Base64 != "", f.Values != nil, len(f.Body) > 0} {
		if ok {
			n++
		}
	}
	if n != 1 {
		p.Add(name, "want one of hex, base64, values and body")
	}
	if _, err := f.payload(); err != nil {
		p.Add(name, err.Error())
	}
	if f.FPort != nil && (*f.FPort < 0 || *f.FPort > 255) {
		p.Add(name+".fPort", "want 0 to 255")
	}
	if _, err := f.moment(time.Time{}); err != nil {
		p.Add(name+".time", "want a time like 2026-01-31T12:00:00Z")
	}
	if _, err := url.ParseQuery(f.Query); err != nil {
		p.Add(name+".query", err.Error())
	}
}

// payload reads hex, with or without blanks and colons, or base64.
func (f *TryFrame) payload() ([]byte, error) {
	if f.Base64 != "" {
		return base64.StdEncoding.DecodeString(f.Base64)
	}
	bare := strings.NewReplacer(" ", "", ":", "", "-", "", "\n", "", "\t", "").Replace(f.Hex)
	return hex.DecodeString(strings.TrimPrefix(bare, "0x"))
}

func (f *TryFrame) moment(otherwise time.Time) (time.Time, error) {
	if f.Time == "" {
		return otherwise, nil
	}
	t, ok := iso8601.Parse(f.Time)
	if !ok {
		return t, relay.Errorf(relay.KindInvalid, "no time: %q", f.Time)
	}
	return t, nil
}

// arrivals reads the frames, which ParseTry has checked. A frame without a time
// is one of now.
func (r *TryRequest) arrivals(now time.Time) ([]iot.Arrival, error) {
	var arrivals []iot.Arrival
	for i := range r.Frames {
		f := &r.Frames[i]
		t, err := f.moment(now)
		if err != nil {
			return nil, relay.Invalid("frames", err.Error())
		}
		frames, err := f.frames(t)
		if err != nil {
			return nil, relay.Invalid("frames", err.Error())
		}
		for _, frame := range frames {
			arrivals = append(arrivals, iot.Arrival{Account: r.owner, ReceivedAt: t, Frame: frame})
		}
	}
	return arrivals, nil
}

// frames makes frames of what is given. Those that a body holds may be fewer than its sender
// posted; the warning reports that.
func (f *TryFrame) frames(t time.Time) ([]decoders.Frame, error) {
	if len(f.Body) > 0 {
		return f.posted(t)
	}
	payload, err := f.payload()
	if err != nil {
		return nil, err
	}
	frame := decoders.Frame{Kind: decoders.Uplink, Payload: payload, Object: f.Values}
	if f.FPort != nil {
		frame.FPort, frame.HasFPort = *f.FPort, true
	}
	if f.FCnt != nil {
		frame.FCnt, frame.HasFCnt = *f.FCnt, true
	}
	return []decoders.Frame{frame}, nil
}

func (f *TryFrame) posted(t time.Time) ([]decoders.Frame, error) {
	body := []byte(f.Body)
	var text string
	if json.Unmarshal(body, &text) == nil {
		body = []byte(text)
	}
	query, err := url.ParseQuery(f.Query)
	if err != nil {
		return nil, err
	}
	path := f.Path
	if path == "" {
		path = "lorawan"
	}
	frames, err := netserver.Parse(netserver.Post{
		Path: path, Query: query, ContentType: f.ContentType, Body: body, ReceivedAt: t,
	})
	if err != nil && len(frames) > 0 {
		frames[0].Warnings = append(frames[0].Warnings, err.Error())
		err = nil
	}
	return frames, err
}
