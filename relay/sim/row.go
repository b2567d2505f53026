package sim

import (
	"cmp"
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// columns are those of fields.
const columns = `account, iccid, imsi, msisdn, pool, subscriber, state, requested, job, service_4g, service_5g,
  pin, pin2, puk, puk2, monthly, warning, cap, recipients`

func fields(acct *relay.AccountID, s *SIM) []any {
	code := func(c *string) any { return db.SealedOr(&s.Unopened, c, simTable, acct) }
	return []any{
		acct, &s.ICCID, &s.IMSI, &s.MSISDN, &s.Pool, &s.Subscriber, &s.State, &s.Requested, &s.Job, &s.Service4G, &s.Service5G,
		code(&s.Codes.PIN), code(&s.Codes.PIN2), code(&s.Codes.PUK), code(&s.Codes.PUK2),
		&s.Limit.Monthly, &s.Limit.Warning, &s.Limit.Cap,
		db.JSON(&s.Recipients),
	}
}

// read returns fields, and completes a SIM that was read.
func read(s *SIM) []any { return readOwned(new(relay.AccountID), s) }

// readOwned returns read for a SIM whose account is wanted, too.
func readOwned(acct *relay.AccountID, s *SIM) []any {
	return append(fields(acct, s), func() {
		s.Requested, s.Limit.Cap = cmp.Or(s.Requested, s.State), cmp.Or(s.Limit.Cap, NoCap)
	})
}

// batchOf is SIMs as rows, as they are after a change.
func batchOf(acct relay.AccountID, changes []changed) *db.Batch {
	return db.BatchOf(columns+", unopened", changes, func(c *changed) []any {
		values := fields(&acct, &c.newSim)
		if len(c.newSim.Recipients) == 0 {
			values[len(values)-1] = ""
		}
		return append(values, c.oldSim.Unopened)
	})
}

// changed is a SIM before and after; the zero SIM for none.
type changed struct{ oldSim, newSim SIM }

// moved reports whether a change moves the SIM in any list.
func (c changed) moved() bool {
	return c.oldSim.IMSI != c.newSim.IMSI || c.oldSim.MSISDN != c.newSim.MSISDN || c.oldSim.Pool != c.newSim.Pool || c.oldSim.Subscriber != c.newSim.Subscriber
}

// forUpdate, behind a query, locks the SIMs that it reads.
const forUpdate = " {for update}"

// load loads the SIMs of an account that exist, by ICCID, or locks them.
func load(ctx context.Context, c db.Conn, acct relay.AccountID, iccids []ICCID, lock string) (map[ICCID]SIM, error) {
	sims, err := db.List(ctx, c, "SIMs", `
SELECT `+columns+` FROM sim
WHERE (account, iccid) IN (SELECT account, iccid FROM batch)`+lock, read, db.AccountColumn(acct, "iccid", iccids))
	return db.By(sims, func(s SIM) ICCID { return s.ICCID }), err
}

// loadOne loads a SIM, or locks it; relay.KindNotFound if there is none.
func loadOne(ctx context.Context, c db.Conn, acct relay.AccountID, iccid ICCID, lock string) (SIM, error) {
	return db.One(ctx, c, "SIM "+string(iccid), `
SELECT `+columns+` FROM sim
WHERE account = $1 AND iccid = $2`+lock, read, acct, iccid)
}

// insert saves new SIMs and returns those that did not exist.
func insert(ctx context.Context, tx *db.Tx, acct relay.AccountID, changes []changed) (map[ICCID]bool, error) {
	return db.Map[ICCID, bool](ctx, tx, "SIMs", `
INSERT INTO sim (`+columns+`, detached)
SELECT `+columns+`, '' FROM batch WHERE true
ON CONFLICT (account, iccid) DO NOTHING
RETURNING iccid, 1`, batchOf(acct, changes))
}

// Most changes move a SIM in no list, and leave alone what is indexed. A code that does not
// open stays as it is unless a new one is declared.
const (
	updateFields = `
UPDATE sim SET state = batch.state, requested = batch.requested, job = batch.job,
  service_4g = batch.service_4g, service_5g = batch.service_5g,
  pin = CASE WHEN batch.unopened = 1 AND batch.pin = '' THEN sim.pin ELSE batch.pin END,
  pin2 = CASE WHEN batch.unopened = 1 AND batch.pin2 = '' THEN sim.pin2 ELSE batch.pin2 END,
  puk = CASE WHEN batch.unopened = 1 AND batch.puk = '' THEN sim.puk ELSE batch.puk END,
  puk2 = CASE WHEN batch.unopened = 1 AND batch.puk2 = '' THEN sim.puk2 ELSE batch.puk2 END,
  monthly = batch.monthly, warning = batch.warning, cap = batch.cap, recipients = batch.recipients`
	updateMoved   = `, imsi = batch.imsi, msisdn = batch.msisdn, subscriber = batch.subscriber`
	updateMatched = `
FROM batch WHERE sim.account = batch.account AND sim.iccid = batch.iccid`
)

// update saves SIMs that are locked; their pools stay as they are.
func update(ctx context.Context, tx *db.Tx, acct relay.AccountID, changes []changed) error {
	var stay, move []changed
	for _, c := range changes {
		if c.moved() {
			move = append(move, c)
		} else {
			stay = append(stay, c)
		}
	}
	if err := tx.Run(ctx, "SIMs", updateFields+updateMatched, batchOf(acct, stay)); err != nil {
		return err
	}
	return tx.Run(ctx, "SIMs", updateFields+updateMoved+updateMatched, batchOf(acct, move))
}
