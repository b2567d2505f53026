package rule

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// ruleSet is the compiled rules of an account, and which of them look at a device.
// A set is replaced when a rule changes.
type ruleSet struct {
	version  int64
	programs map[string]*Program // enabled ones by id
	named    map[string][]*Program
	others   []*Program // that do not name their devices
	mu       sync.Mutex
	looks    map[string]look // by device
	records  int64           // the version of types
	types    map[string]iot.SensorType
}

// look is the rules that look at a device, as long as it is what it was.
type look struct {
	decoder, location, name string
	programs                []*Program
}

// maxLooks bounds how many devices a set remembers its rules of.
const maxLooks = 200_000

// set returns the rules of an account as they are at a version or later.
func (s *Service) set(ctx context.Context, acct account.ID, v iot.Version) (*ruleSet, error) {
	s.mu.Lock()
	was := s.sets[acct]
	s.mu.Unlock()
	if was != nil && was.version >= v.Rules {
		was.renew(v.Records)
		return was, nil
	}
	rules, err := s.deps.Store.Rules(ctx, acct)
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	is := s.newSet(acct, was, rules, v)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.sets[acct]; now == nil || now.version <= is.version {
		s.sets[acct] = is
	}
	return is, nil
}

// newSet compiles rules; those that have not changed are taken from the set before.
func (s *Service) newSet(acct account.ID, was *ruleSet, rules []Rule, v iot.Version) *ruleSet {
	is := &ruleSet{
		version: v.Rules, records: v.Records, programs: make(map[string]*Program), named: make(map[string][]*Program),
		looks: make(map[string]look),
	}
	for i := range rules {
		r := &rules[i]
		if !r.Enabled {
			continue
		}
		p := was.unchanged(r)
		if p == nil {
			var err error
			if p, err = Compile(r); err != nil { // it was checked by another version when it was saved
				s.failed.add(acct, r.ID, fmt.Errorf("the rule is not valid any longer: %w", err), s.o.Now())
				continue
			}
		}
		is.add(p)
	}
	return is
}

func (is *ruleSet) unchanged(r *Rule) *Program {
	if is == nil {
		return nil
	}
	p := is.programs[r.ID]
	if p == nil {
		return nil
	}
	now := *r
	now.Failures = p.Rule.Failures
	if !reflect.DeepEqual(p.Rule, now) {
		return nil
	}
	return p
}

func (is *ruleSet) add(p *Program) {
	is.programs[p.Rule.ID] = p
	if len(p.Rule.Devices.IDs) == 0 {
		is.others = append(is.others, p)
		return
	}
	for id := range p.selected.ids {
		is.named[id] = append(is.named[id], p)
	}
}

// renew forgets what another version of the records may have.
func (is *ruleSet) renew(records int64) {
	is.mu.Lock()
	defer is.mu.Unlock()
	if is.records < records {
		is.records, is.types = records, nil
	}
}

// of returns the rules that look at a device.
func (is *ruleSet) of(d *iot.Device) []*Program {
	is.mu.Lock()
	defer is.mu.Unlock()
	l, known := is.looks[d.ID]
	if known && l.decoder == d.DecoderID && l.location == d.LocationID && l.name == d.Name {
		return l.programs
	}
	if len(is.looks) >= maxLooks {
		clear(is.looks)
	}
	l = look{d.DecoderID, d.LocationID, d.Name, is.match(d)}
	is.looks[d.ID] = l
	return l.programs
}

func (is *ruleSet) match(d *iot.Device) (all []*Program) {
	for _, list := range [...][]*Program{is.named[d.ID], is.others} {
		for _, p := range list {
			if p.selected.has(d) {
				all = append(all, p)
			}
		}
	}
	return all
}

// sensorTypes returns the sensor types, for the units of readings.
func (s *Service) sensorTypes(ctx context.Context, is *ruleSet) (map[string]iot.SensorType, error) {
	is.mu.Lock()
	types := is.types
	is.mu.Unlock()
	if types != nil {
		return types, nil
	}
	types, err := s.deps.Fleet.SensorTypes(ctx)
	if err != nil {
		return nil, fmt.Errorf("sensor types: %w", err)
	}
	is.mu.Lock()
	defer is.mu.Unlock()
	is.types = types
	return types, nil
}

// zone is where hours and days of expressions are.
func (s *Service) zone() *time.Location { return s.o.Settings.zone() }
