package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// IoT keeps devices, decoders and the latest values; it is an iot.Store.
type IoT struct{ db *DB }

// IoT returns the store of devices.
func (d *DB) IoT() *IoT { return &IoT{db: d} }

// change saves a record and counts the account's version up, in one step.
func (s *IoT) change(ctx context.Context, noun string, acct account.ID, write func(p redis.Pipeliner) error) error {
	_, err := s.db.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if err := write(p); err != nil {
			return err
		}
		return p.Incr(ctx, keyIoTVersion(acct)).Err()
	})
	return wrap(noun, err)
}

// CreateDecoder saves a decoder.
func (s *IoT) CreateDecoder(ctx context.Context, acct account.ID, d iot.Decoder) error {
	return s.change(ctx, "decoder "+d.ID, acct, func(p redis.Pipeliner) error {
		return setField(ctx, p, keyDecoders(acct), d.ID, d)
	})
}

// ChangeDecoder saves what change makes of a decoder.
func (s *IoT) ChangeDecoder(ctx context.Context, acct account.ID, id string, change func(*iot.Decoder) error) (iot.Decoder, error) {
	return edit(ctx, s.db, "decoder", keyDecoders(acct), id, keyIoTVersion(acct), change)
}

// DeleteDecoder forgets a decoder.
func (s *IoT) DeleteDecoder(ctx context.Context, acct account.ID, id string) error {
	return s.change(ctx, "decoder "+id, acct, func(p redis.Pipeliner) error {
		return p.HDel(ctx, keyDecoders(acct), id).Err()
	})
}

// Decoder loads a decoder.
func (s *IoT) Decoder(ctx context.Context, acct account.ID, id string) (iot.Decoder, error) {
	return field[iot.Decoder](ctx, s.db, "decoder", keyDecoders(acct), id)
}

// Decoders lists an account's decoders by id.
func (s *IoT) Decoders(ctx context.Context, acct account.ID) ([]iot.Decoder, error) {
	all, err := fields[iot.Decoder](ctx, s.db, "decoders", keyDecoders(acct))
	return slices.SortedFunc(maps.Values(all), func(a, b iot.Decoder) int { return cmp.Compare(a.ID, b.ID) }), err
}

// PutLocation saves a location.
func (s *IoT) PutLocation(ctx context.Context, acct account.ID, l iot.Location) error {
	return s.change(ctx, "location "+l.ID, acct, func(p redis.Pipeliner) error {
		return setField(ctx, p, keyLocations(acct), l.ID, l)
	})
}

// DeleteLocation forgets a location.
func (s *IoT) DeleteLocation(ctx context.Context, acct account.ID, id string) error {
	return s.change(ctx, "location "+id, acct, func(p redis.Pipeliner) error {
		return p.HDel(ctx, keyLocations(acct), id).Err()
	})
}

// Locations lists an account's locations by id.
func (s *IoT) Locations(ctx context.Context, acct account.ID) ([]iot.Location, error) {
	all, err := fields[iot.Location](ctx, s.db, "locations", keyLocations(acct))
	return slices.SortedFunc(maps.Values(all), func(a, b iot.Location) int { return cmp.Compare(a.ID, b.ID) }), err
}

// PutSensorType saves a sensor type of the whole gateway.
func (s *IoT) PutSensorType(ctx context.Context, t iot.SensorType) error {
	_, err := s.db.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if err := setField(ctx, p, keySensorTypes(), t.ID, t); err != nil {
			return err
		}
		return p.Incr(ctx, keySensorTypesVersion()).Err()
	})
	return wrap("sensor type "+t.ID, err)
}

// DeleteSensorType forgets a sensor type.
func (s *IoT) DeleteSensorType(ctx context.Context, id string) error {
	_, err := s.db.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HDel(ctx, keySensorTypes(), id)
		return p.Incr(ctx, keySensorTypesVersion()).Err()
	})
	return wrap("sensor type "+id, err)
}

// SensorTypes returns every sensor type by id.
func (s *IoT) SensorTypes(ctx context.Context) (map[string]iot.SensorType, error) {
	return fields[iot.SensorType](ctx, s.db, "sensor types", keySensorTypes())
}

// Versions returns a number per account that changes with every change that
// frames of the account have to notice.
func (s *IoT) Versions(ctx context.Context, accts []account.ID) (map[account.ID]int64, error) {
	cmds := make([]*redis.StringCmd, len(accts))
	var types *redis.StringCmd
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		types = p.Get(ctx, keySensorTypesVersion())
		for i, acct := range accts {
			cmds[i] = p.Get(ctx, keyIoTVersion(acct))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, wrap("iot versions", err)
	}
	common, err := types.Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, wrap("iot versions", err)
	}
	out := make(map[account.ID]int64, len(accts))
	for i, acct := range accts {
		own, err := cmds[i].Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, wrap("iot versions", err)
		}
		out[acct] = own<<20 + common
	}
	return out, nil
}

// conflict is what creating a device answers when its identifier is taken.
func conflict(identifier string) error {
	return relay.Errorf(relay.KindConflict, "device %s has already been claimed", identifier)
}

func encode(record any) string {
	b, _ := json.Marshal(record) // plain structs of strings and finite numbers
	return string(b)
}
