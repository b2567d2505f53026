package iot

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/account"
)

// memory remembers devices and compiled decoders, so that a frame of a known
// device costs no look-up. It holds for one version of the account's records:
// a change takes effect with the next batch.
type memory struct {
	mu       sync.Mutex
	accounts map[account.ID]*remembered
}

// remembered is what is known of one account. It is replaced, never emptied, so
// that a batch in flight keeps a consistent view.
type remembered struct {
	version  int64
	mu       sync.Mutex
	profiles map[string]*profile // by identifier
	decoders map[string]*compiled
}

// profile is a device with what its frames need. Its sensors only grow.
type profile struct {
	Device  Device
	decoder *compiled // nil when the device has none
	params  map[string]any
	sensors atomic.Pointer[map[string]*Sensor] // by key; replaced, never changed
}

// compiled is a decoder ready to run; broken says why it cannot.
type compiled struct {
	Decoder
	codec  decoders.Decoder
	broken error
}

// maxProfiles bounds what is remembered of one account.
const maxProfiles = 200_000

func newMemory() *memory { return &memory{accounts: make(map[account.ID]*remembered)} }

func (m *memory) of(acct account.ID) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.accounts[acct]
	if !ok {
		r = newRemembered(-1)
		m.accounts[acct] = r
	}
	return r
}

func newRemembered(version int64) *remembered {
	return &remembered{version: version, profiles: make(map[string]*profile), decoders: make(map[string]*compiled)}
}

// renew forgets an account whose records changed.
func (m *memory) renew(acct account.ID, version int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.accounts[acct]; !ok || r.version != version || len(r.profiles) > maxProfiles {
		m.accounts[acct] = newRemembered(version)
	}
}

// refresh forgets what changed since the last batch.
func (s *Service) refresh(ctx context.Context, b *batch) error {
	accts := make([]account.ID, 0, len(b.groups))
	for acct := range b.groups {
		accts = append(accts, acct)
	}
	versions, err := s.store.Versions(ctx, accts)
	if err != nil {
		return fmt.Errorf("iot: versions: %w", err)
	}
	for _, acct := range accts {
		s.memory.renew(acct, versions[acct])
	}
	return nil
}

func (r *remembered) profile(identifier string) *profile {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.profiles[identifier]
}

func (r *remembered) keep(identifier string, p *profile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.profiles[identifier] = p
}

// decoder returns a compiled decoder, nil for an empty id.
func (s *Service) decoder(ctx context.Context, acct account.ID, r *remembered, id string) (*compiled, error) {
	if id == "" {
		return nil, nil
	}
	r.mu.Lock()
	c := r.decoders[id]
	r.mu.Unlock()
	if c != nil {
		return c, nil
	}
	d, err := s.store.Decoder(ctx, acct, id)
	if err != nil {
		return nil, err
	}
	c = &compiled{Decoder: d}
	c.codec, c.broken = s.compile(d.Codec, d.Source, d.UseRawPayload)
	r.mu.Lock()
	r.decoders[id] = c
	r.mu.Unlock()
	return c, nil
}

func newProfile(d Device, sensors []Sensor, c *compiled) *profile {
	p := &profile{Device: d, decoder: c}
	byKey := make(map[string]*Sensor, len(sensors))
	for i := range sensors {
		byKey[sensors[i].Key] = &sensors[i]
	}
	p.sensors.Store(&byKey)
	if d.Parameters != "" {
		_ = json.Unmarshal([]byte(d.Parameters), &p.params) // checked when it was saved
	}
	return p
}
