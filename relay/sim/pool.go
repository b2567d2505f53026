package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// PoolChange has the fields of a new pool, or the changes to a pool; a nil field is left unchanged.
type PoolChange struct {
	Name  *string
	Limit LimitChange
	// Recipients replaces all recipients. A recipient with a known e-mail address keeps its id.
	Recipients *[]Recipient
}

// check trims the fields of the change and returns their problems. A new pool must have a name.
func (c PoolChange) check(isNew bool) error {
	p := relay.Problems{}
	if c.Name != nil {
		*c.Name = strings.TrimSpace(*c.Name)
		checkLine(p, "name", *c.Name)
	}
	if isNew && c.Name == nil || c.Name != nil && *c.Name == "" {
		p.AddNamed("name", "The %s field is required.")
	}
	c.Limit.check(p, 1)
	if c.Recipients == nil {
		return p.Err()
	}
	list := *c.Recipients
	if len(list) > MaxRecipients {
		p.AddNamed("recipients", "The %s must be at most 100.")
		return p.Err()
	}
	for i := range list {
		path := fmt.Sprintf("recipients.%d.", i)
		list[i].check(p, path, false)
		if slices.ContainsFunc(list[:i], list[i].sameEmail) {
			p.AddNamed(path+"email", "The %s has a duplicate value.")
		}
	}
	return p.Err()
}

// apply returns the pool after the change. It returns an Invalid error if the limit is invalid.
func (c PoolChange) apply(p Pool, newID func() string) (Pool, error) {
	if c.Name != nil {
		p.Name = *c.Name
	}
	var err error
	if p.Limit, err = c.Limit.apply(p.Limit); err != nil || c.Recipients == nil {
		return p, err
	}
	oldRecipients := p.Recipients
	p.Recipients = slices.Clone(*c.Recipients)
	for i, r := range p.Recipients {
		if k := slices.IndexFunc(oldRecipients, r.sameEmail); k >= 0 {
			p.Recipients[i].ID = oldRecipients[k].ID
		} else {
			p.Recipients[i].ID = newID()
		}
	}
	return p, nil
}

func (s *Service) newID() string { return relay.NewID(s.Now()) }

// CreatePool creates a pool without SIMs.
func (s *Service) CreatePool(ctx context.Context, acct relay.AccountID, c PoolChange) (Pool, error) {
	if err := c.check(true); err != nil {
		return Pool{}, err
	}
	p, err := c.apply(Pool{ID: s.newID(), Limit: Limit{Action: NoAction}}, s.newID)
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
		*p, err = c.apply(*p, s.newID)
		return err
	})
	if err != nil {
		return Pool{}, err
	}
	return p, s.Limits.EnforcePool(ctx, acct, id)
}

func (s *Service) changePool(ctx context.Context, acct relay.AccountID, id string, change func(*Pool) error) (Pool, error) {
	return db.Transact(ctx, s.Pools.db, "pool "+id, func(ctx context.Context, tx *db.Tx) (Pool, error) {
		p, _, err := pools.Change(ctx, tx, acct, id, change)
		return p, ReplaceNotFound(err, PoolNotFound())
	})
}

// MaxICCIDs is the largest number of SIMs that a request may name.
const MaxICCIDs = 5000

// ParseICCIDs parses a list of ICCIDs and removes repeated ones. It returns an Invalid error for
// an empty list and for more than MaxICCIDs, and the refusal InvalidICCID for an invalid ICCID.
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
			return nil, InvalidICCID(text)
		}
		if !seen[iccid] {
			seen[iccid] = true
			iccids = append(iccids, iccid)
		}
	}
	return iccids, nil
}

// Attach adds SIMs of the account to a pool, all or none. SIMs may already be in the pool.
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

// Detach removes SIMs from a pool, all or none, and returns the pool.
func (s *Service) Detach(ctx context.Context, acct relay.AccountID, pool string, list []string) (Pool, error) {
	iccids, err := ParseICCIDs(list)
	if err != nil {
		return Pool{}, err
	}
	if err := s.SIMs.Detach(ctx, acct, pool, iccids); err != nil {
		return Pool{}, err
	}
	p, err := s.Pools.Get(ctx, acct, pool)
	return p, ReplaceNotFound(err, PoolNotFound())
}

// PoolSIMs returns a page of a pool's SIMs and their total number.
func (s *Service) PoolSIMs(ctx context.Context, acct relay.AccountID, pool string, q Query) ([]SIM, int, error) {
	if _, err := s.Pools.Get(ctx, acct, pool); err != nil {
		return nil, 0, ReplaceNotFound(err, PoolNotFound())
	}
	return s.SIMs.List(ctx, acct, Scope{Pool: pool}, q)
}

const pools db.Documents[Pool] = "sim_pool"

// Attach adds SIMs to a pool.
func (s *SIMs) Attach(ctx context.Context, acct relay.AccountID, pool string, iccids []ICCID) error {
	return s.changePool(ctx, acct, pool, "", iccids)
}

// Detach removes SIMs from a pool.
func (s *SIMs) Detach(ctx context.Context, acct relay.AccountID, pool string, iccids []ICCID) error {
	return s.changePool(ctx, acct, pool, strconv.FormatUint(rand.Uint64(), 36), iccids)
}

// changePool adds SIMs to a pool or, if detachment is set, removes them from the pool. The detachment
// identifies the call, so that a repeated transaction has the same result.
func (s *SIMs) changePool(ctx context.Context, acct relay.AccountID, pool, detachment string, iccids []ICCID) error {
	const lock = `
		SELECT iccid, pool, detached
		FROM sim
		WHERE (account, iccid) IN (SELECT account, iccid FROM batch)
		ORDER BY iccid {for update}`
	attach, label := detachment == "", "pool "+pool
	return s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		// 1. Lock the SIMs.
		if _, err := pools.Get(ctx, tx, acct, pool); err != nil {
			return ReplaceNotFound(err, PoolNotFound())
		}
		members, err := db.List(ctx, tx, "SIMs", lock, func(v *member) []any {
			return []any{&v.iccid, &v.pool, &v.detached}
		}, db.AccountColumn(acct, "iccid", iccids))
		if err != nil {
			return err
		}
		byICCID := db.IndexBy(members, func(m member) ICCID { return m.iccid })

		// 2. Find the SIMs to change. Refuse the request if one of them must not change.
		var changedICCIDs []ICCID
		for _, iccid := range iccids {
			m, found := byICCID[iccid]
			repeated := !attach && m.detached == detachment
			switch {
			case !found:
				return InvalidICCID(string(iccid))
			case attach && m.pool != "" && m.pool != pool:
				return InOtherPool(iccid)
			case !attach && !repeated && m.pool != pool:
				return InvalidICCID(string(iccid))
			}
			if attach && m.pool == "" || !attach && !repeated {
				changedICCIDs = append(changedICCIDs, iccid)
			}
		}

		// 3. Save the pool of these SIMs.
		rows := db.AccountColumn(acct, "iccid", changedICCIDs)
		if attach {
			return tx.Run(ctx, label, "UPDATE sim SET pool = $1"+updateMatched, pool, rows)
		}
		return tx.Run(ctx, label, "UPDATE sim SET pool = '', detached = $1"+updateMatched, detachment, rows)
	})
}

// member is a SIM with its pool and its last detachment.
type member struct {
	iccid          ICCID
	pool, detached string
}

// Pools stores pools.
type Pools struct{ db *db.DB }

// NewPools returns the store of pools.
func NewPools(database *db.DB) *Pools { return &Pools{db: database} }

// Get loads a pool.
func (s *Pools) Get(ctx context.Context, acct relay.AccountID, id string) (Pool, error) {
	return pools.Get(ctx, s.db, acct, id)
}

// Put saves a new pool.
func (s *Pools) Put(ctx context.Context, acct relay.AccountID, p Pool) error {
	return pools.Put(ctx, s.db, acct, p.ID, p)
}
