package admin

import (
	"context"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// maxTryFrames is the largest number of frames that one request tries.
const maxTryFrames = 100

// TryRequest says what is tried on which frames: a stored decoder, that of a
// device, or a codec and its source, which stand in the place of a decoder's own
// where both are given; on frames given here, or on the last that a device sent.
type TryRequest struct {
	// Account may be left out where only one has such a decoder or device.
	Account       AccountRef      `json:"account,omitempty"`
	owner         relay.AccountID // the account
	DecoderID     string          `json:"decoder_id,omitempty"`
	DeviceID      string          `json:"device_id,omitempty"`
	Codec         string          `json:"codec,omitempty"`
	Source        string          `json:"source,omitempty"`
	UseRawPayload *bool           `json:"use_raw_payload,omitempty"`
	Sensors       []iot.Mapping   `json:"sensors,omitempty"`
	Frames        []TryFrame      `json:"frames,omitempty"`
	Last          int             `json:"last,omitempty"`
}

// ParseTry reads a request; a mistake is relay.KindInvalid and names the field.
func ParseTry(body []byte) (TryRequest, error) {
	var r TryRequest
	if err := decodeStrictly(body, &r); err != nil {
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

// TryOffline tries a codec and its source without a gateway.
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
	answer, err := s.try(c.UserContext(), r)
	if err != nil {
		return err
	}
	return c.JSON(answer)
}

func (s *Surface) try(ctx context.Context, r TryRequest) (TryAnswer, error) {
	var err error
	switch { // without an account, that of the device or of the decoder
	case r.owner != 0:
	case r.DeviceID != "":
		r.owner, _, err = s.findDevice(ctx, 0, r.DeviceID)
	case r.DecoderID != "":
		r.owner, _, err = s.findDecoder(ctx, 0, r.DecoderID)
	}
	if err != nil {
		return TryAnswer{}, err
	}
	arrivals, err := s.arrivals(ctx, &r)
	if err != nil {
		return TryAnswer{}, err
	}
	tried, err := s.IoT.Try(ctx, r.trial(), arrivals)
	return answerOf(r, arrivals, tried), err
}

// arrivals are the frames of the request, or the last of the device. A device
// that the frames name themselves takes them, unless something else is named.
func (s *Surface) arrivals(ctx context.Context, r *TryRequest) ([]iot.Arrival, error) {
	if r.Last > 0 {
		d, err := s.IoT.Device(ctx, r.owner, r.DeviceID)
		if err != nil {
			return nil, err
		}
		return s.Inspector.Recent(ctx, r.owner, d, r.Last)
	}
	arrivals, err := r.arrivals(s.Now())
	if err != nil || r.DeviceID != "" || r.owner == 0 {
		return arrivals, err
	}
	if name := sender(arrivals); name != "" {
		d, err := s.IoT.DeviceByIdentifier(ctx, r.owner, name)
		if err != nil && relay.KindOf(err) != relay.KindNotFound {
			return nil, err
		}
		r.DeviceID = d.ID
	}
	return arrivals, nil
}

// sender is the one device that all frames are of, "" if there is none.
func sender(arrivals []iot.Arrival) string {
	name := ""
	for i, a := range arrivals {
		if i > 0 && a.Frame.Identifier != name {
			return ""
		}
		name = a.Frame.Identifier
	}
	return name
}

// findDevice finds a device, and its account if that is 0.
func (s *Surface) findDevice(ctx context.Context, acct relay.AccountID, id string) (relay.AccountID, iot.Device, error) {
	return owned(ctx, s.Accounts, acct, func(acct relay.AccountID) (iot.Device, error) { return s.IoT.Device(ctx, acct, id) })
}

// findDecoder finds a decoder, and its account if that is 0.
func (s *Surface) findDecoder(ctx context.Context, acct relay.AccountID, id string) (relay.AccountID, iot.Decoder, error) {
	return owned(ctx, s.Accounts, acct, func(acct relay.AccountID) (iot.Decoder, error) { return s.IoT.Decoder(ctx, acct, id) })
}

// owned returns a record of an account; of the one account that has it if that is 0.
func owned[T any](ctx context.Context, accounts Accounts, acct relay.AccountID, get func(relay.AccountID) (T, error)) (owner relay.AccountID, record T, err error) {
	if acct != 0 {
		record, err = get(acct)
		return acct, record, err
	}
	all, err := accounts.Accounts(ctx)
	if err != nil {
		return 0, record, err
	}
	for _, a := range all {
		switch one, err := get(a.ID); {
		case relay.KindOf(err) == relay.KindNotFound:
		case err != nil:
			return 0, record, err
		case owner != 0:
			return 0, record, relay.Invalid("account", "Several accounts have one of this id: name the account.")
		default:
			owner, record = a.ID, one
		}
	}
	if owner == 0 {
		return 0, record, relay.Errorf(relay.KindNotFound, "no account has it")
	}
	return owner, record, nil
}
