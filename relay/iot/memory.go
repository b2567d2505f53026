package iot

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
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
	// feeds are those of them that the decoder maps; nil until they were fitted.
	feeds atomic.Pointer[map[string]*Sensor]
	// crowded is set when the account had no room for the sensors it lacks.
	crowded atomic.Bool
}

// compiled is a decoder ready to run; broken says why it cannot, missing that
// the account has no such decoder.
type compiled struct {
	Decoder
	codec   decoders.Decoder
	broken  error
	missing error
}

// What is remembered of one account at most. The decoders are those that frames
// ask for, whether they exist or not.
const (
	maxProfiles = 200_000
	maxDecoders = 10_000
)

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
	if r, ok := m.accounts[acct]; !ok || r.version != version || r.size() > maxProfiles {
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

func (r *remembered) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.profiles)
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
func (s *Service) decoder(ctx context.Context, v *visit, id string) (*compiled, error) {
	if id == "" {
		return nil, nil
	}
	r := v.known
	r.mu.Lock()
	c := r.decoders[id]
	r.mu.Unlock()
	if c == nil {
		d, err := s.store.Decoder(ctx, v.acct, id)
		if err != nil && relay.KindOf(err) != relay.KindNotFound {
			return nil, err
		}
		if c = (&compiled{Decoder: d, missing: err}); err == nil {
			c.codec, c.broken = s.compile(d.Codec, d.Source, d.UseRawPayload)
		}
		r.keepDecoder(id, c)
	}
	if c.missing != nil {
		return nil, c.missing
	}
	return c, nil
}

// keepDecoder remembers a decoder, or that there is none of that id: creating
// one counts the account's version up.
func (r *remembered) keepDecoder(id string, c *compiled) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.decoders) < maxDecoders {
		r.decoders[id] = c
	}
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
