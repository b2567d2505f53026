package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
)

// PoolChange is a new pool, or a change to one: what is nil stays as it is.
type PoolChange struct {
	Name  *string
	Limit LimitChange
	// Recipients replaces all of them; one whose e-mail address stays keeps its id.
	Recipients *[]Recipient
}

// check tidies and refuses.
func (c PoolChange) check(fresh bool) error {
	p := relay.Problems{}
	if c.Name != nil {
		*c.Name = strings.TrimSpace(*c.Name)
		checkLine(p, "name", *c.Name)
	}
	if fresh && c.Name == nil || c.Name != nil && *c.Name == "" {
		p.AddNamed("name", "The %s field is required.")
	}
	c.Limit.check(p, 1)
	if c.Recipients != nil {
		checkAll(p, *c.Recipients)
	}
	return p.Err()
}

func checkAll(p relay.Problems, list []Recipient) {
	if len(list) > MaxRecipients {
		p.AddNamed("recipients", "The %s must be at most 100.")
		return
	}
	for i := range list {
		path := fmt.Sprintf("recipients.%d.", i)
		list[i].check(p, path, false)
		if slices.ContainsFunc(list[:i], list[i].sameEmail) {
			p.AddNamed(path+"email", "The %s has a duplicate value.")
		}
	}
}

// to applies the change, or refuses the limit.
func (c PoolChange) to(p Pool, newID func() string) (Pool, error) {
	if c.Name != nil {
		p.Name = *c.Name
	}
	var err error
	if p.Limit, err = c.Limit.to(p.Limit); err != nil || c.Recipients == nil {
		return p, err
	}
	have := p.Recipients
	p.Recipients = slices.Clone(*c.Recipients)
	for i, r := range p.Recipients {
		if offset := slices.IndexFunc(have, r.sameEmail); offset >= 0 {
			p.Recipients[i].ID = have[offset].ID
		} else {
			p.Recipients[i].ID = newID()
		}
	}
	return p, nil
}

func (s *Service) newID() string { return relay.NewID(s.opts.Now()) }

// CreatePool makes a pool without SIMs.
func (s *Service) CreatePool(ctx context.Context, acct relay.AccountID, c PoolChange) (Pool, error) {
	if err := c.check(true); err != nil {
		return Pool{}, err
	}
	p, err := c.to(Pool{ID: s.newID(), Limit: Limit{Cap: NoCap}}, s.newID)
	if err != nil {
		return Pool{}, err
	}
	return p, s.Pools.Put(ctx, acct, p)
}

// ChangePool changes a pool.
func (s *Service) ChangePool(ctx context.Context, acct relay.AccountID, id string, c PoolChange) (Pool, error) {
	if err := c.check(false); err != nil {
		return Pool{}, err
	}
	p, err := s.changePool(ctx, acct, id, func(p *Pool) (err error) {
		*p, err = c.to(*p, s.newID)
		return err
	})
	if err != nil {
		return Pool{}, err
	}
	return p, s.Limits.EnforcePool(ctx, acct, id)
}

func (s *Service) changePool(ctx context.Context, acct relay.AccountID, id string, change func(*Pool) error) (Pool, error) {
	p, err := s.Pools.Change(ctx, acct, id, change)
	return p, Missing(err, NoPool())
}

// MaxICCIDs is how many SIMs a request may name.
const MaxICCIDs = 5000

// ParseICCIDs reads a list of ICCIDs, of which there must be one at least. What
// is no ICCID is refused like one that the account does not have.
func ParseICCIDs(list []string) ([]ICCID, error) {
	switch {
	case len(list) == 0:
		return nil, relay.Invalid("iccids", "The iccids field is required.")
	case len(list) > MaxICCIDs:
		return nil, relay.Invalid("iccids", "The iccids must be at most 5000.")
	}
	iccids := make([]ICCID, 0, len(list))
	seen := make(map[ICCID]bool, len(list))
	for _, text := range list {
		iccid, err := ParseICCID(text)
		if err != nil {
			return nil, BadICCID(text)
		}
		if !seen[iccid] {
			seen[iccid] = true
			iccids = append(iccids, iccid)
		}
	}
	return iccids, nil
}

// Attach puts SIMs of the account into a pool, all or none. Those that are in it
// stay.
func (s *Service) Attach(ctx context.Context, acct relay.AccountID, pool string, list []string) error {
	iccids, err := ParseICCIDs(list)
	if err != nil {
		return err
	}
	if err := s.SIMs.Attach(ctx, acct, pool, iccids); err != nil {
		return err
	}
	return s.Limits.EnforceSIMs(ctx, acct, iccids)
}

// Detach takes SIMs out of a pool, all or none, and returns the pool.
func (s *Service) Detach(ctx context.Context, acct relay.AccountID, pool string, list []string) (Pool, error) {
	iccids, err := ParseICCIDs(list)
	if err != nil {
		return Pool{}, err
	}
	if err := s.SIMs.Detach(ctx, acct, pool, iccids); err != nil {
		return Pool{}, err
	}
	p, err := s.Pools.Get(ctx, acct, pool)
	return p, Missing(err, NoPool())
}

// PoolSIMs returns a page of a pool's SIMs and how many there are.
func (s *Service) PoolSIMs(ctx context.Context, acct relay.AccountID, pool string, q Query) ([]SIM, int, error) {
	if _, err := s.Pools.Get(ctx, acct, pool); err != nil {
		return nil, 0, Missing(err, NoPool())
	}
	return s.SIMs.List(ctx, acct, Scope{Pool: pool}, q)
}
