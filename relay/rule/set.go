package rule

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// ruleSet has the compiled rules of an account. A change of a rule replaces the set.
type ruleSet struct {
	version  int64
	programs map[string]*Program // programs of enabled rules by ID
	// undecryptable has the IDs of rules with records that cannot be decrypted. Their states do not
	// change.
	undecryptable    map[string]bool
	mutes            []Mute
	readAt           time.Time
	programsByDevice map[string][]*Program // programs of rules with Devices.IDs, by device ID
	otherPrograms    []*Program            // programs of rules without Devices.IDs
	mu               sync.Mutex
	matches          map[string]deviceMatch // matches by device ID
}

// deviceMatch caches the programs that apply to a device. It is valid until the decoder,
// location or name of the device changes.
type deviceMatch struct {
	decoder, location, name string
	programs                []*Program
}

// maxMatches is the largest number of devices with cached programs in a set.
const maxMatches = 200_000

// rereadEvery is the interval at which a set with undecryptable rules is read again. When the right key
// is configured, the rules can be decrypted, but the version does not change.
const rereadEvery = 10 * time.Second

// loadSet returns the rules of an account in version v or a later version, from the cache if possible.
func (s *Service) loadSet(ctx context.Context, acct relay.AccountID, v iot.Version) (*ruleSet, error) {
	s.mu.Lock()
	oldSet := s.sets[acct]
	s.mu.Unlock()
	if oldSet != nil && oldSet.version >= v.Rules && (len(oldSet.undecryptable) == 0 || s.o.Now().Sub(oldSet.readAt) < rereadEvery) {
		return oldSet, nil
	}
	rules, err := s.deps.Store.Rules(ctx, acct)
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	set := s.newSet(acct, oldSet, rules, v)
	if set.mutes, err = s.deps.Store.Mutes(ctx, acct); err != nil {
		return nil, fmt.Errorf("mutes: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if current := s.sets[acct]; current == nil || current.version <= set.version {
		s.sets[acct] = set
	}
	return set, nil
}

// newSet compiles rules. It reuses the programs of unchanged rules.
func (s *Service) newSet(acct relay.AccountID, oldSet *ruleSet, rules []Rule, v iot.Version) *ruleSet {
	set := &ruleSet{
		version: v.Rules, programs: make(map[string]*Program), programsByDevice: make(map[string][]*Program),
		matches: make(map[string]deviceMatch), undecryptable: make(map[string]bool), readAt: s.o.Now(),
	}
	if oldSet == nil {
		oldSet = &ruleSet{}
	}
	for i := range rules {
		r := &rules[i]
		if r.Undecryptable {
			set.undecryptable[r.ID] = true
			if !oldSet.undecryptable[r.ID] {
				s.failures.add(acct, r.ID, relay.ErrUndecryptable, s.o.Now())
			}
		}
		if !r.Enabled {
			continue
		}
		p, unchanged := oldSet.programs[r.ID], false
		if p != nil {
			compared := *r
			compared.Failures = p.Rule.Failures
			unchanged = reflect.DeepEqual(p.Rule, compared)
		}
		if !unchanged {
			var err error
			if p, err = Compile(r); err != nil { // another version of Penstock saved the rule
				s.failures.add(acct, r.ID, fmt.Errorf("the rule is no longer valid: %w", err), s.o.Now())
				continue
			}
		}
		set.programs[r.ID] = p
		if len(r.Devices.IDs) == 0 {
			set.otherPrograms = append(set.otherPrograms, p)
		}
		for id := range p.selected.ids {
			set.programsByDevice[id] = append(set.programsByDevice[id], p)
		}
	}
	return set
}

// programsFor returns the programs that apply to a device. It caches them.
func (set *ruleSet) programsFor(d *iot.Device) []*Program {
	set.mu.Lock()
	defer set.mu.Unlock()
	m, cached := set.matches[d.ID]
	if cached && m.decoder == d.DecoderID && m.location == d.LocationID && m.name == d.Name {
		return m.programs
	}
	if len(set.matches) >= maxMatches {
		clear(set.matches)
	}
	m = deviceMatch{d.DecoderID, d.LocationID, d.Name, set.match(d)}
	set.matches[d.ID] = m
	return m.programs
}

func (set *ruleSet) match(d *iot.Device) (programs []*Program) {
	for _, list := range [...][]*Program{set.programsByDevice[d.ID], set.otherPrograms} {
		for _, p := range list {
			if p.selected.includes(d) {
				programs = append(programs, p)
			}
		}
	}
	return programs
}
