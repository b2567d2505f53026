package iot

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/relay"
)

// recordCache caches devices and compiled decoders by account, so that a frame of a known device
// needs no query of its own. An entry is valid for one version of the account's records: a change
// of a record takes effect with the next batch.
type recordCache struct {
	mu       sync.Mutex
	accounts map[relay.AccountID]*accountCache
}

// accountCache caches the records of one account. It is replaced, never emptied, so that the records
// of a batch in progress are consistent.
type accountCache struct {
	version  int64
	mu       sync.Mutex
	devices  map[string]*cachedDevice    // by identifier
	decoders map[string]*compiledDecoder // nil for a missing decoder; creating it changes the version
	programs *programs                   // shared by all versions
}

// cachedDevice is a device with its decoder and sensors.
type cachedDevice struct {
	Device  Device
	decoder *compiledDecoder // nil for a device without a decoder
	params  map[string]any
	sensors atomic.Pointer[map[string]*Sensor] // by key; the map is replaced, not modified
	// mapped has the sensors of the keys that the decoder maps; nil until matchSensors sets it.
	mapped atomic.Pointer[map[string]*Sensor]
	// limitReached is set if the device lacks sensors because of the series limit.
	limitReached atomic.Bool
}

// compiledDecoder is a decoder with its program, or with the error of its compilation.
type compiledDecoder struct {
	Decoder
	program    *program
	compileErr error
}

// Limits of the cache of one account. maxCachedDecoders includes missing decoders that frames
// name.
const (
	maxCachedDevices  = 200_000
	maxCachedDecoders = 10_000
)

// account returns the cache of an account. refresh must have been called for the account.
func (c *recordCache) account(acct relay.AccountID) *accountCache {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.accounts[acct]
}

func newAccountCache(version int64, p *programs) *accountCache {
	return &accountCache{version: version, devices: make(map[string]*cachedDevice), decoders: make(map[string]*compiledDecoder), programs: p}
}

// retryIfGone returns an error of relay.KindUnavailable if err means that a cached device
// (relay.KindNotFound) or decoder (relay.KindInvalid) is missing in the database, because it was
// deleted or the database was restored from a backup. The batch is then processed again without the
// cache.
func (s *Service) retryIfGone(acct relay.AccountID, err error) error {
	if kind := relay.KindOf(err); kind != relay.KindNotFound && kind != relay.KindInvalid {
		return err
	}
	s.records.forget(acct)
	return relay.Errorf(relay.KindUnavailable, "the database lacks a cached record: %w", err)
}

func (c *recordCache) forget(acct relay.AccountID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.accounts[acct]; a != nil {
		c.accounts[acct] = newAccountCache(-1, a.programs)
	}
}

// refresh replaces the caches of accounts whose records have changed since the last batch.
func (s *Service) refresh(ctx context.Context, b *frameBatch) error {
	accts := make([]relay.AccountID, 0, len(b.groups))
	for acct := range b.groups {
		accts = append(accts, acct)
	}
	versions, err := s.store.Versions(ctx, accts)
	if err != nil {
		return fmt.Errorf("iot: versions: %w", err)
	}
	b.versions = versions
	c := s.records
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, acct := range accts {
		version := versions[acct].Records
		a, ok := c.accounts[acct]
		if !ok {
			c.accounts[acct] = newAccountCache(version, &programs{byDecoder: make(map[string]*program)})
			continue
		}
		a.mu.Lock()
		isFull := len(a.devices) > maxCachedDevices
		a.mu.Unlock()
		if a.version != version || isFull {
			a.programs.sweep(s.options.Now())
			c.accounts[acct] = newAccountCache(version, a.programs)
		}
	}
	return nil
}

func (a *accountCache) device(identifier string) *cachedDevice {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.devices[identifier]
}

func (a *accountCache) putDevice(identifier string, cd *cachedDevice) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.devices[identifier] = cd
}

// decoder returns a compiled decoder, or nil for an empty ID. missing reports whether the account has
// no decoder with that ID.
func (s *Service) decoder(ctx context.Context, records *accountRecords, id string) (c *compiledDecoder, missing bool, err error) {
	if id == "" {
		return nil, false, nil
	}
	a := records.cache
	a.mu.Lock()
	c, cached := a.decoders[id]
	a.mu.Unlock()
	if cached {
		return c, c == nil, nil
	}
	d, err := s.store.Decoder(ctx, records.acct, id)
	switch {
	case err == nil:
		c = &compiledDecoder{Decoder: d}
		c.program, c.compileErr = s.program(a.programs, d)
		if relay.KindOf(c.compileErr) == relay.KindUnavailable {
			return nil, false, c.compileErr
		}
	case relay.KindOf(err) != relay.KindNotFound:
		return nil, false, fmt.Errorf("iot: decoder %s: %w", id, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.decoders) < maxCachedDecoders {
		a.decoders[id] = c
	}
	return c, c == nil, nil
}

func newCachedDevice(d Device, sensors []Sensor, c *compiledDecoder) *cachedDevice {
	cd := &cachedDevice{Device: d, decoder: c}
	byKey := make(map[string]*Sensor, len(sensors))
	for i := range sensors {
		byKey[sensors[i].Key] = &sensors[i]
	}
	cd.sensors.Store(&byKey)
	if d.Parameters != "" {
		_ = json.Unmarshal([]byte(d.Parameters), &cd.params) // checked when it was saved
	}
	return cd
}
