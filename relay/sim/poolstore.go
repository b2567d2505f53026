package sim

import (
	"context"
	"math/rand/v2"
	"strconv"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// pools are records of their own.
const pools db.Documents[Pool] = "sim_pool"

// Attach puts SIMs into a pool.
func (s *SIMs) Attach(ctx context.Context, acct relay.AccountID, pool string, iccids []ICCID) error {
	return s.join(ctx, acct, newJoining(pool, iccids, true))
}

// Detach takes SIMs out of a pool.
func (s *SIMs) Detach(ctx context.Context, acct relay.AccountID, pool string, iccids []ICCID) error {
	return s.join(ctx, acct, newJoining(pool, iccids, false))
}

// joining is a call of Attach or Detach, which differs from all others in its name:
// one that comes again, because its answer was lost, is answered as before.
type joining struct {
	pool, name string
	iccids     []ICCID
	attach     bool
}

func newJoining(pool string, iccids []ICCID, attach bool) joining {
	return joining{pool, strconv.FormatUint(rand.Uint64(), 36), iccids, attach}
}

func (s *SIMs) join(ctx context.Context, acct relay.AccountID, j joining) error {
	return s.db.Write(ctx, "pool "+j.pool, func(ctx context.Context, tx *db.Tx) error {
		_, err := pools.Get(ctx, tx, acct, j.pool)
		if db.IsNotFound(err) {
			return NoPool()
		}
		if err != nil {
			return err
		}
		have, err := lockMembers(ctx, tx, acct, j.iccids)
		if err != nil {
			return err
		}
		moving, err := j.moving(have)
		if err != nil {
			return err
		}
		return j.move(ctx, tx, acct, moving)
	})
}

// member is a SIM and the name of the call that took it out of a pool last.
type member struct {
	iccid          ICCID
	pool, detached string
}

func lockMembers(ctx context.Context, tx *db.Tx, acct relay.AccountID, iccids []ICCID) (map[ICCID]member, error) {
	members, err := db.List(ctx, tx, "SIMs", `
SELECT iccid, pool, detached FROM sim
WHERE (account, iccid) IN (SELECT account, iccid FROM batch)
ORDER BY iccid {for update}`, func(m *member) []any {
		return []any{&m.iccid, &m.pool, &m.detached}
	}, db.AccountColumn(acct, "iccid", iccids))
	return db.By(members, func(m member) ICCID { return m.iccid }), err
}

// moving returns the SIMs that are not yet where they shall be, or refuses the
// first of the call's that must not be moved.
func (j joining) moving(have map[ICCID]member) (moving []ICCID, err error) {
	for _, iccid := range j.iccids {
		m, found := have[iccid]
		gone := !j.attach && m.detached == j.name
		switch {
		case !found:
			return nil, BadICCID(string(iccid))
		case j.attach && m.pool != "" && m.pool != j.pool:
			return nil, NotFree(iccid)
		case !j.attach && !gone && m.pool != j.pool:
			return nil, BadICCID(string(iccid))
		}
		if j.attach && m.pool == "" || !j.attach && !gone {
			moving = append(moving, iccid)
		}
	}
	return moving, nil
}

// move saves the new pool of SIMs.
func (j joining) move(ctx context.Context, tx *db.Tx, acct relay.AccountID, moving []ICCID) error {
	statement, value := "UPDATE sim SET pool = $1"+updateMatched, j.pool
	if !j.attach {
		statement, value = "UPDATE sim SET pool = '', detached = $1"+updateMatched, j.name
	}
	return tx.Run(ctx, "pool "+j.pool, statement, value, db.AccountColumn(acct, "iccid", moving))
}

// Pools keeps pools.
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

// Change saves a pool as changed by the function.
func (s *Pools) Change(ctx context.Context, acct relay.AccountID, id string, change func(*Pool) error) (Pool, error) {
	return db.Transact(ctx, s.db, "pool "+id, func(ctx context.Context, tx *db.Tx) (Pool, error) {
		pool, _, err := pools.Change(ctx, tx, acct, id, change)
		return pool, err
	})
}
