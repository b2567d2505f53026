package admin

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// maxTryFrames is how many frames one request tries.
const maxTryFrames = 100

// TryRequest says what is tried on which frames: a stored decoder, that of a
// device, or a codec and its source, which stand in the place of a decoder's own
// where both are given; on frames given here, or on the last that a device sent.
type TryRequest struct {
	// Account may be left out where only one has such a decoder or device.
	Account       AccountRef    `json:"account,omitempty"`
	owner         account.ID    // the account
	DecoderID     string        `json:"decoder_id,omitempty"`
	DeviceID      string        `json:"device_id,omitempty"`
	Codec         string        `json:"codec,omitempty"`
	Source        string        `json:"source,omitempty"`
	UseRawPayload *bool         `json:"use_raw_payload,omitempty"`
	Sensors       []iot.Mapping `json:"sensors,omitempty"`
	Frames        []TryFrame    `json:"frames,omitempty"`
	Last          int           `json:"last,omitempty"`
}

// ParseTry reads a request; a mistake is relay.KindInvalid and names the field.
func ParseTry(body []byte) (TryRequest, error) {
	var r TryRequest
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, misread(err)
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

// misread tells a field of the wrong kind from what is no JSON.
func misread(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
		return relay.Invalid(e.Field, "want "+e.Type.String()+", got a "+e.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return relay.Invalid(strings.Trim(name, `"`), "is not known")
	}
	return fiber.NewError(fiber.StatusUnprocessableEntity, "Invalid JSON.")
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
	raw, err := httpd.Body(c, 4<<20)
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
	if err := s.ownerOf(ctx, &r); err != nil {
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

// ownerOf finds the account of the named decoder or device if the request names no
// account.
func (s *Surface) ownerOf(ctx context.Context, r *TryRequest) error {
	if r.owner != 0 || r.DecoderID == "" && r.DeviceID == "" {
		return nil
	}
	owners, err := s.owners(ctx, func(acct account.ID) error {
		if r.DeviceID != "" {
			_, err := s.IoT.Device(ctx, acct, r.DeviceID)
			return err
		}
		_, err := s.IoT.Decoder(ctx, acct, r.DecoderID)
		return err
	})
	if err != nil {
		return err
	}
	r.owner = owners
	return nil
}

// owners returns the one account that has something.
func (s *Surface) owners(ctx context.Context, has func(account.ID) error) (account.ID, error) {
	all, err := s.Accounts.Accounts(ctx)
	if err != nil {
		return 0, err
	}
	var found account.ID
	for _, a := range all {
		switch err := has(a.ID); {
		case relay.KindOf(err) == relay.KindNotFound:
		case err != nil:
			return 0, err
		case found != 0:
			return 0, relay.Invalid("account", "Several accounts have one of this id: name the account.")
		default:
			found = a.ID
		}
	}
	if found == 0 {
		return 0, relay.Errorf(relay.KindNotFound, "no account has it")
	}
	return found, nil
}
