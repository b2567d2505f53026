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

// CreateDecoder saves a new decoder and returns it with its id. Its codec is
// json when none is named.
//
// It returns Invalid if a field is missing or the source does not compile.
func (s *Service) CreateDecoder(ctx context.Context, acct relay.AccountID, d Decoder) (Decoder, error) {
	if d.Codec == "" {
		d.Codec = "json"
	}
	p := relay.Problems{}
	given := DecoderChange{Name: &d.Name, Description: &d.Description}
	if p.Require("type", string(d.Type)); d.Type != "" {
		given.Type = &d.Type
	}
	given.check(p)
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

// checkSource notes why a codec or its source cannot be used; of a source that does not
// compile, the line and the column. It returns an Unavailable error if that could not be
// found out.
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

// sourceField is the field that an error of a compiler is about.
func sourceField(err error) string {
	if e, ok := errors.AsType[*decoders.Error](err); ok && e.Field == "codec" {
		return "codec"
	}
	return "source"
}

// sourceProblem is an error of a compiler as one of the request.
func sourceProblem(err error) error {
	if relay.KindOf(err) == relay.KindUnavailable {
		return err
	}
	return relay.Invalid(sourceField(err), err.Error())
}

// Decoder returns a decoder of the account.
func (s *Service) Decoder(ctx context.Context, acct relay.AccountID, id string) (Decoder, error) {
	return s.store.Decoder(ctx, acct, id)
}

// Decoders returns the account's decoders.
func (s *Service) Decoders(ctx context.Context, acct relay.AccountID) ([]Decoder, error) {
	return s.store.Decoders(ctx, acct)
}

// AddSensor maps a key of a decoder to a sensor type; a key that is mapped
// already gets the new type. Devices get the sensor, or the type, with their
// next frame.
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
		at := slices.IndexFunc(d.Sensors, func(have Mapping) bool { return have.Key == m.Key })
		switch {
		case at >= 0:
			d.Sensors[at] = m
		case len(d.Sensors) >= maxMappings:
			return relay.Invalid("key", fmt.Sprintf("The decoder has %d sensors, the most there may be.", maxMappings))
		default:
			d.Sensors = append(d.Sensors, m)
		}
		return nil
	})
}

// FoundDecoder is a decoder of a list, and its account.
type FoundDecoder struct {
	Account relay.AccountID
	Decoder
}

// FindDecoders returns a page of the decoders of an account, 0 for all accounts, by
// account and id, and the cursor of the next page, empty on the last one. A limit of 0
// means 100. It returns Invalid for a cursor of another list.
func (s *Service) FindDecoders(ctx context.Context, acct relay.AccountID, cursor string, limit int) ([]FoundDecoder, string, error) {
	limit = cmp.Or(limit, 100)
	from, err := parseDevicePlace(cursor)
	if err != nil {
		return nil, "", err
	}
	found, err := s.store.ScanDecoders(ctx, acct, from.Ref, limit+1)
	if err != nil || len(found) <= limit {
		return found, "", err
	}
	last := found[limit-1]
	return found[:limit], devicePlace{Ref: Ref{last.Account, last.ID}}.String(), nil
}
