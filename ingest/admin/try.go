package admin

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// maxTryFrames is the maximum number of frames in a TryRequest.
const maxTryFrames = 100

// TryRequest selects a decoder and the frames with which to try it. The decoder is the stored
// decoder DecoderID or the decoder of the device DeviceID; Codec and Source replace its codec and
// source. The frames are Frames, or the newest Last frames of the device.
type TryRequest struct {
	// Account may be empty if only one account has the decoder or device.
	Account       AccountRef      `json:"account,omitempty"`
	owner         relay.AccountID // the account that Account refers to
	DecoderID     string          `json:"decoder_id,omitempty"`
	DeviceID      string          `json:"device_id,omitempty"`
	Codec         string          `json:"codec,omitempty"`
	Source        string          `json:"source,omitempty"`
	UseRawPayload *bool           `json:"use_raw_payload,omitempty"`
	Sensors       []iot.Mapping   `json:"sensors,omitempty"`
	Frames        []TryFrame      `json:"frames,omitempty"`
	Last          int             `json:"last,omitempty"`
}

// ParseTry parses a request. Its error is relay.KindInvalid and names the field.
func ParseTry(body []byte) (TryRequest, error) {
	var r TryRequest
	if err := params.DecodeStrictly(body, &r); err != nil {
		return r, err
	}
	p := relay.Problems{}
	for i := range r.Frames {
		r.Frames[i].check(p, "frames."+strconv.Itoa(i))
	}
	switch {
	case len(r.Frames) == 0 && r.Last == 0:
		p.Add("frames", "Give frames, or a device_id and last.")
	case len(r.Frames) > 0 && r.Last != 0:
		p.Add("last", "Give frames or last, not both.")
	case r.Last != 0 && r.DeviceID == "":
		p.Add("device_id", "The device id field is required with last.")
	}
	if r.Last < 0 || r.Last > maxTryFrames {
		p.Add("last", "The last must be between 1 and "+strconv.Itoa(maxTryFrames)+".")
	}
	if len(r.Frames) > maxTryFrames {
		p.Add("frames", "There may be at most "+strconv.Itoa(maxTryFrames)+" frames.")
	}
	return r, p.Err()
}

func (r *TryRequest) trial() iot.Trial {
	return iot.Trial{
		Account: r.owner, DecoderID: r.DecoderID, DeviceID: r.DeviceID, Codec: r.Codec, Source: r.Source,
		UseRawPayload: r.UseRawPayload, Sensors: r.Sensors,
	}
}

// TryOffline tries the codec and the source of a request without a gateway.
func TryOffline(ctx context.Context, compile iot.Compiler, r TryRequest, now time.Time) (TryAnswer, error) {
	arrivals, err := r.arrivals(now)
	if err != nil {
		return TryAnswer{}, err
	}
	tried, err := iot.TrySource(ctx, compile, r.trial(), arrivals)
	return answerOf(r, arrivals, tried), err
}

func (s *Surface) tryDecoder(c *fiber.Ctx) error {
	raw, err := httpd.Body(c, maxBody)
	if err != nil {
		return err
	}
	r, err := ParseTry(raw)
	if err != nil {
		return err
	}
	if r.owner, err = s.accountID(c, r.Account); err != nil {
		return err
	}
	ctx := c.UserContext()
	switch { // the device or the decoder determines a missing account
	case r.owner != 0:
	case r.DeviceID != "":
		r.owner, _, err = s.findDevice(ctx, 0, r.DeviceID)
	case r.DecoderID != "":
		r.owner, _, err = s.findDecoder(ctx, 0, r.DecoderID)
	}
	if err != nil {
		return err
	}
	arrivals, err := s.arrivals(ctx, &r)
	if err != nil {
		return err
	}
	tried, err := s.IoT.Try(ctx, r.trial(), arrivals)
	if err != nil {
		return err
	}
	return c.JSON(answerOf(r, arrivals, tried))
}

// arrivals returns the frames of the request, or the last frames of its device. If the request has
// no device and all frames are of one device, arrivals sets the device of the request.
func (s *Surface) arrivals(ctx context.Context, r *TryRequest) ([]iot.Arrival, error) {
	if r.Last > 0 {
		d, err := s.IoT.Device(ctx, r.owner, r.DeviceID)
		if err != nil {
			return nil, err
		}
		return s.Inspector.Recent(ctx, r.owner, d, r.Last)
	}
	arrivals, err := r.arrivals(s.Now())
	if err != nil || len(arrivals) == 0 || r.DeviceID != "" || r.owner == 0 {
		return arrivals, err
	}
	identifier := arrivals[0].Frame.Identifier
	if identifier == "" || slices.ContainsFunc(arrivals, func(a iot.Arrival) bool { return a.Frame.Identifier != identifier }) {
		return arrivals, nil
	}
	d, err := s.IoT.DeviceByIdentifier(ctx, r.owner, identifier)
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return nil, err
	}
	r.DeviceID = d.ID
	return arrivals, nil
}

// findDevice returns a device with its account. acct 0 means that the account is unknown.
func (s *Surface) findDevice(ctx context.Context, acct relay.AccountID, id string) (relay.AccountID, iot.Device, error) {
	return findOwned(ctx, s.Accounts, acct, func(acct relay.AccountID) (iot.Device, error) { return s.IoT.Device(ctx, acct, id) })
}

// findDecoder returns a decoder with its account. acct 0 means that the account is unknown.
func (s *Surface) findDecoder(ctx context.Context, acct relay.AccountID, id string) (relay.AccountID, iot.Decoder, error) {
	return findOwned(ctx, s.Accounts, acct, func(acct relay.AccountID) (iot.Decoder, error) { return s.IoT.Decoder(ctx, acct, id) })
}

// findOwned returns a record of an account. If acct is 0, findOwned searches all accounts, and
// returns an error unless exactly one account has the record.
func findOwned[T any](ctx context.Context, accounts Accounts, acct relay.AccountID, get func(relay.AccountID) (T, error)) (owner relay.AccountID, record T, err error) {
	if acct != 0 {
		record, err = get(acct)
		return acct, record, err
	}
	allAccounts, err := accounts.Accounts(ctx)
	if err != nil {
		return 0, record, err
	}
	for _, a := range allAccounts {
		switch found, err := get(a.ID); {
		case relay.KindOf(err) == relay.KindNotFound:
		case err != nil:
			return 0, record, err
		case owner != 0:
			return 0, record, relay.Invalid("account", "Several accounts have a record with this id: name the account.")
		default:
			owner, record = a.ID, found
		}
	}
	if owner == 0 {
		return 0, record, relay.Errorf(relay.KindNotFound, "no account has the record")
	}
	return owner, record, nil
}

// TryFrame is a frame to try: a payload, decoded values, or the complete post of a sender.
type TryFrame struct {
	Hex    string         `json:"hex,omitempty"`
	Base64 string         `json:"base64,omitempty"`
	Values map[string]any `json:"values,omitempty"`
	FPort  *int           `json:"fPort,omitempty"`
	FCnt   *int64         `json:"fCnt,omitempty"`
	Time   string         `json:"time,omitempty"` // RFC 3339; the time of receipt

	// Body is the body of a sender's post: a JSON value, or any other body as a JSON string.
	Body        json.RawMessage `json:"body,omitempty"`
	ContentType string          `json:"content_type,omitempty"`
	Path        string          `json:"path,omitempty"`  // the last segment of the webhook's path: lorawan, lpwan, …
	Query       string          `json:"query,omitempty"` // of the webhook's URL: event=up
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
		p.Add(name, "Give exactly one of hex, base64, values and body.")
	}
	if _, err := f.payload(); err != nil {
		p.Add(name, err.Error())
	}
	if f.FPort != nil && (*f.FPort < 0 || *f.FPort > 255) {
		p.Add(name+".fPort", "The fPort must be a number from 0 to 255.")
	}
	if _, ok := iso8601.Parse(f.Time); f.Time != "" && !ok {
		p.Add(name+".time", "The time must be a time like 2026-01-31T12:00:00Z.")
	}
	if _, err := url.ParseQuery(f.Query); err != nil {
		p.Add(name+".query", err.Error())
	}
}

// payload decodes base64, or hex with or without spaces, colons and hyphens.
func (f *TryFrame) payload() ([]byte, error) {
	if f.Base64 != "" {
		return base64.StdEncoding.DecodeString(f.Base64)
	}
	bare := strings.NewReplacer(" ", "", ":", "", "-", "", "\n", "", "\t", "").Replace(f.Hex)
	return hex.DecodeString(strings.TrimPrefix(bare, "0x"))
}

// arrivals returns the frames of a request that ParseTry has returned. The default time of a frame
// is now.
func (r *TryRequest) arrivals(now time.Time) ([]iot.Arrival, error) {
	var arrivals []iot.Arrival
	for i := range r.Frames {
		f := &r.Frames[i]
		t, ok := iso8601.Parse(f.Time)
		if !ok {
			t = now
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

// frames returns the frame, or the frames of a post. If some frames of a post are unreadable, the
// first readable frame has a warning.
func (f *TryFrame) frames(t time.Time) ([]decoders.Frame, error) {
	if len(f.Body) > 0 {
		return f.parseBody(t)
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

// parseBody returns the frames of a post.
func (f *TryFrame) parseBody(t time.Time) ([]decoders.Frame, error) {
	body := []byte(f.Body)
	var text string
	if json.Unmarshal(body, &text) == nil {
		body = []byte(text)
	}
	query, err := url.ParseQuery(f.Query)
	if err != nil {
		return nil, err
	}
	frames, err := netserver.Parse(netserver.Post{
		Path: cmp.Or(f.Path, "lorawan"), Query: query, ContentType: f.ContentType, Body: body, ReceivedAt: t,
	})
	if err != nil && len(frames) > 0 {
		frames[0].Warnings = append(frames[0].Warnings, err.Error())
		err = nil
	}
	return frames, err
}
