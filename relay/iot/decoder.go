package iot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// CreateDecoder saves a new decoder and returns it with its ID. The default codec is json.
//
// It returns relay.KindInvalid if a field is missing or the source does not compile.
func (s *Service) CreateDecoder(ctx context.Context, acct relay.AccountID, c DecoderChange) (Decoder, error) {
	d := Decoder{Codec: "json"}
	c.apply(&d)
	p := relay.Problems{}
	c.Name, c.Description = &d.Name, &d.Description // the name and the description are required
	if p.Require("type", string(d.Type)); d.Type == "" {
		c.Type = nil
	}
	c.check(p)
	if err := s.checkSource(p, d); err != nil {
		return d, err
	}
	if err := p.Err(); err != nil {
		return d, err
	}
	d.ID = s.options.NewID()
	if err := s.store.CreateDecoder(ctx, acct, d); err != nil {
		return d, fmt.Errorf("decoder %s: save: %w", d.ID, err)
	}
	return d, nil
}

// checkSource adds a problem if the codec does not exist or its source does not compile. It returns
// relay.KindUnavailable if the source cannot be compiled now.
func (s *Service) checkSource(p relay.Problems, d Decoder) error {
	_, err := s.compile(d.Codec, d.Source, d.UseRawPayload)
	if relay.KindOf(err) == relay.KindUnavailable {
		return err
	}
	if err != nil {
		p.Add(sourceField(err), err.Error())
	}
	return nil
}

func sourceField(err error) string {
	if e, ok := errors.AsType[*decoders.Error](err); ok && e.Field == "codec" {
		return "codec"
	}
	return "source"
}

// Decoder returns a decoder of the account.
func (s *Service) Decoder(ctx context.Context, acct relay.AccountID, id string) (Decoder, error) {
	return s.store.Decoder(ctx, acct, id)
}

// Decoders returns the account's decoders.
func (s *Service) Decoders(ctx context.Context, acct relay.AccountID) ([]Decoder, error) {
	return s.store.Decoders(ctx, acct)
}

// AddSensor maps a key of a decoder to a sensor type, or changes the type of a mapped key. Each
// device gets the sensor, or its new type, with its next frame.
func (s *Service) AddSensor(ctx context.Context, acct relay.AccountID, decoderID string, m Mapping) (Decoder, error) {
	p := relay.Problems{}
	p.Require("sensor_type_id", m.SensorTypeID)
	p.Require("key", m.Key)
	p.Limit("key", m.Key, maxKey)
	if !isOneLine(m.Key) {
		p.Add("key", "The key must be one line of text.")
	}
	types, err := s.store.SensorTypes(ctx)
	if err != nil {
		return Decoder{}, err
	}
	if _, ok := types[m.SensorTypeID]; !ok && m.SensorTypeID != "" {
		p.Add("sensor_type_id", "The selected sensor type id is invalid.")
	}
	if err := p.Err(); err != nil {
		return Decoder{}, err
	}
	return s.store.ChangeDecoder(ctx, acct, decoderID, func(d *Decoder) error {
		i := slices.IndexFunc(d.Sensors, func(stored Mapping) bool { return stored.Key == m.Key })
		switch {
		case i >= 0:
			d.Sensors[i] = m
		case len(d.Sensors) >= maxMappings:
			return relay.Invalid("key", fmt.Sprintf("The decoder has %d sensors, the largest number allowed.", maxMappings))
		default:
			d.Sensors = append(d.Sensors, m)
		}
		return nil
	})
}

// FoundDecoder is a listed decoder with its account.
type FoundDecoder struct {
	Account relay.AccountID
	Decoder
}

// FindDecoders returns a page of the decoders of an account, 0 for all accounts, by account and ID. It
// also returns the cursor of the next page, which is empty on the last page. A limit of 0 means 100. It
// returns relay.KindInvalid for an invalid cursor.
func (s *Service) FindDecoders(ctx context.Context, acct relay.AccountID, cursor string, limit int) ([]FoundDecoder, string, error) {
	limit = cmp.Or(limit, 100)
	start, err := parsePosition(cursor)
	if err != nil {
		return nil, "", err
	}
	found, err := s.store.ScanDecoders(ctx, acct, start.Ref, limit+1)
	if err != nil || len(found) <= limit {
		return found, "", err
	}
	lastDecoder := found[limit-1]
	return found[:limit], position{Ref: Ref{lastDecoder.Account, lastDecoder.ID}}.String(), nil
}

// DecoderChange has the fields of a new decoder, or the changes of a decoder. Nil fields do not
// change.
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

// ChangeDecoder applies a change, which takes effect with the next frame. A change of the codec without
// a source removes the source, which belonged to the old codec.
//
// It returns relay.KindInvalid if the changed decoder is invalid, relay.KindNotFound if the account has
// no such decoder, and relay.KindConflict after a concurrent change of the codec or source.
func (s *Service) ChangeDecoder(ctx context.Context, acct relay.AccountID, id string, c DecoderChange) (Decoder, error) {
	// Compilation may take long, so the source is checked before the transaction.
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
		// The codec or the source may have been changed since the check.
		if c.apply(d); (c.Codec != nil || c.Source != nil || c.UseRawPayload != nil) && !d.sameCodec(checked) {
			return relay.Errorf(relay.KindConflict, "decoder %s was changed at the same time", id)
		}
		return nil
	})
}

func (d Decoder) sameCodec(otherDecoder Decoder) bool {
	return d.Codec == otherDecoder.Codec && d.Source == otherDecoder.Source && d.UseRawPayload == otherDecoder.UseRawPayload
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

// check checks only the fields of the change, because decoders of an inventory may lack a
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

// RemoveSensor removes a key from a decoder's mapping. The sensors of devices with this key
// keep their readings and calibration, and get new readings if the key is mapped again.
//
// It returns relay.KindNotFound if the account has no such decoder or the decoder does not map the key.
func (s *Service) RemoveSensor(ctx context.Context, acct relay.AccountID, decoderID, key string) (Decoder, error) {
	return s.store.ChangeDecoder(ctx, acct, decoderID, func(d *Decoder) error {
		i := slices.IndexFunc(d.Sensors, func(m Mapping) bool { return m.Key == key })
		if i < 0 {
			return relay.Errorf(relay.KindNotFound, "decoder %s does not map the key %s", decoderID, decoders.Clip(key, maxKey))
		}
		d.Sensors = slices.Delete(d.Sensors, i, i+1)
		return nil
	})
}

// Limits of texts, in bytes, and of the number of keys that a decoder maps.
const (
	maxComment  = 2000
	maxKey      = 200
	maxMappings = 1000
)

// DeleteDecoder deletes a decoder. It returns relay.KindInvalid while devices use the decoder, and
// relay.KindNotFound if the account has no such decoder.
func (s *Service) DeleteDecoder(ctx context.Context, acct relay.AccountID, id string) error {
	return s.store.DeleteUnusedDecoder(ctx, acct, id)
}
