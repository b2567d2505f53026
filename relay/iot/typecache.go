package iot

import (
	"context"
	"slices"
	"sync"

	"github.com/penstock/penstock/relay"
)

// typeCache caches the sensor types that devices had at the last query of their
// readings. Dashboards query the same devices repeatedly; with the cached types the
// readings are fetched concurrently with the records, which then show whether the
// types are still current.
type typeCache struct {
	mu    sync.Mutex
	types map[Ref][]string // by device
}

// maxCachedTypes is how many devices are cached before the cache is cleared.
const maxCachedTypes = 50_000

func (c *typeCache) get(device Ref) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.types[device]
}

func (c *typeCache) put(device Ref, types []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.types == nil || len(c.types) >= maxCachedTypes {
		c.types = make(map[Ref][]string)
	}
	c.types[device] = types
}

// queryResult is the answer of a reading store.
type queryResult[T any] struct {
	rows []T
	err  error
}

// withRecords loads the records of a device and queries the reading store for rows
// of its sensors' types; concurrently if the types are cached. It returns
// relay.KindNotFound if there is no such device, and no rows if it has no sensors.
func withRecords[T any](ctx context.Context, s *Service, acct relay.AccountID, deviceID string,
	query func(ctx context.Context, types []string) ([]T, error),
) (rows []T, o Overview, types map[string]SensorType, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cachedTypes := s.sensorTypesOf.get(Ref{acct, deviceID})
	prefetched := make(chan queryResult[T], 1)
	if len(cachedTypes) > 0 {
		go func() {
			var result queryResult[T]
			result.err = relay.Recovered("readings of device "+deviceID, func() (err error) {
				result.rows, err = query(ctx, cachedTypes)
				return err
			})
			prefetched <- result
		}()
	}
	if o, types, err = s.overview(ctx, acct, deviceID); err != nil {
		return nil, o, nil, err
	}
	names := typesOf(o.Sensors)
	switch {
	case len(names) == 0:
		return nil, o, types, nil
	case slices.Equal(names, cachedTypes):
		result := <-prefetched
		return result.rows, o, types, result.err
	}
	s.sensorTypesOf.put(Ref{acct, deviceID}, names)
	rows, err = query(ctx, names)
	return rows, o, types, err
}
