package iot

import (
	"cmp"
	"context"
	"slices"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// DecoderChange is what may change in a decoder; nil fields stay.
type DecoderChange struct {
	Name          *string     `json:"name"`
	Description   *string     `json:"description"`
	Type          *DeviceType `json:"type"`
	MACVersion    *string     `json:"loraWanMacVersion"`
	Revision      *string     `json:"loraWanRevision"`
	ClassB        *bool       `json:"loraSupportClassB"`
	ClassC        *bool       `json:"loraSupportClassC"`
	UseRawPayload *bool       `json:"useRawPayload"`
	Codec         *string     `json:"codec"`
	Source        *string     `json:"source"`
}

// ChangeDecoder applies a change, which the next frame follows. A source
// belongs to its codec: a change of the codec without a source forgets the one
// that was there.
//
// It returns Invalid if what results could not be used, and NotFound if the
// account has no such decoder.
func (s *Service) ChangeDecoder(ctx context.Context, acct relay.AccountID, id string, c DecoderChange) (Decoder, error) {
	// A codec runs elsewhere and may take long, so it is checked before the transaction.
	checked, err := s.store.Decoder(ctx, acct, id)
	if err != nil {
		return checked, err
	}
	p := relay.Problems{}
	c.check(p)
	oldDecoder := checked
	c.apply(&checked)
	if !oldDecoder.sameCodec(checked) {
		if err := s.checkSource(p, checked); err != nil {
			return oldDecoder, err
		}
	}
	if err := p.Err(); err != nil {
		return oldDecoder, err
	}
	return s.store.ChangeDecoder(ctx, acct, id, func(d *Decoder) error {
		// A change that names what is stored already may meet another change of the codec.
		if c.apply(d); (c.Codec != nil || c.Source != nil || c.UseRawPayload != nil) && !d.sameCodec(checked) {
			return relay.Errorf(relay.KindConflict, "decoder %s was changed at the same time", id)
		}
		return nil
	})
}

// sameCodec reports whether both decoders run the same code.
func (d Decoder) sameCodec(other Decoder) bool {
	return d.Codec == other.Codec && d.Source == other.Source && d.UseRawPayload == other.UseRawPayload
}

func (c DecoderChange) apply(d *Decoder) {
	if c.Codec != nil && cmp.Or(*c.Codec, "json") != d.Codec {
		d.Codec, d.Source = cmp.Or(*c.Codec, "json"), ""
	}
	relay.Assign(&d.Name, c.Name)
	relay.Assign(&d.Description, c.Description)
	relay.Assign(&d.Type, c.Type)
	relay.Assign(&d.MACVersion, c.MACVersion)
	relay.Assign(&d.Revision, c.Revision)
	relay.Assign(&d.ClassB, c.ClassB)
	relay.Assign(&d.ClassC, c.ClassC)
	relay.Assign(&d.UseRawPayload, c.UseRawPayload)
	relay.Assign(&d.Source, c.Source)
}

// check checks only the fields that change: a decoder of the inventory may have no
// description.
func (c DecoderChange) check(p relay.Problems) {
	if c.Name != nil {
		p.Require("name", *c.Name)
		p.Limit("name", *c.Name, maxName)
	}
	if c.Description != nil {
		p.Require("description", *c.Description)
		p.Limit("description", *c.Description, maxComment)
	}
	if c.Type != nil && !slices.Contains(DeviceTypes(), *c.Type) {
		p.Add("type", "The selected type is invalid.")
	}
}

// RemoveSensor takes a key out of a decoder's mapping. Frames feed it no more;
// the sensors that devices have of it keep their readings and their
// calibration, and go on where they ended if the key is mapped again.
//
// It returns NotFound if there is no such decoder, or no such key in it.
func (s *Service) RemoveSensor(ctx context.Context, acct relay.AccountID, decoderID, key string) (Decoder, error) {
	return s.store.ChangeDecoder(ctx, acct, decoderID, func(d *Decoder) error {
		at := slices.IndexFunc(d.Sensors, func(m Mapping) bool { return m.Key == key })
		if at < 0 {
			return relay.Errorf(relay.KindNotFound, "decoder %s maps no key %s", decoderID, decoders.Clip(key, maxKey))
		}
		d.Sensors = slices.Delete(d.Sensors, at, at+1)
		return nil
	})
}

// The limits of an account's records, in bytes, and of the keys that a decoder maps.
const (
	maxComment  = 2000
	maxKey      = 200
	maxMappings = 1000
)
