package inbound

import (
	"cmp"
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Claim is a carrier's id that one of our messages claims.
type Claim struct {
	Key    string
	Holder string // the message's id
}

// InboxMessage is a message in the inbox of a relay.
type InboxMessage struct {
	Account relay.AccountID `json:"account"`
	Relay   string          `json:"relay"`
	// Labels are the action's parameters when the message was received.
	Labels  []string `json:"labels,omitempty"`
	Message Message  `json:"message"`
}

// Store keeps what receiving messages needs. All gateways on one database share
// it.
type Store struct{ db *db.DB }

// NewStore returns the store of a database.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// sweepGroupsMost is how many groups of parts one transaction of Sweep deletes.
const sweepGroupsMost = 1000

// Sweep deletes what has expired: carriers' ids, acknowledgements, parked
// messages, and groups of parts whose last message need not be remembered.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	for _, of := range []struct{ table, key string }{{"carrier_id", "id"}, {"inbox", "account, relay, id"}, {"part_parked", "grp, event"}} {
		if err := s.db.SweepExpired(ctx, "sweep of inbound messages", of.table, of.key, "expires", now); err != nil {
			return err
		}
	}
	return s.sweepGroups(ctx, now)
}

func (s *Store) sweepGroups(ctx context.Context, now time.Time) error {
	const noun = "sweep of parts"
	return s.db.Repeat(ctx, noun, sweepGroupsMost, func(ctx context.Context, tx *db.Tx) (int, error) {
		expired, err := db.Values[string](ctx, tx, noun, `
SELECT grp FROM part_group
WHERE due = 0 AND expires <= $1 AND NOT EXISTS (SELECT 1 FROM part_ready WHERE part_ready.grp = part_group.grp)
ORDER BY expires LIMIT $2 {skip locked}`, now, sweepGroupsMost)
		if err != nil {
			return 0, err
		}
		b := db.Column("grp", expired)
		return len(expired), tx.RunAll(ctx, noun, db.Do("DELETE FROM part WHERE grp IN (SELECT grp FROM batch)", b),
			db.Do("DELETE FROM part_group WHERE grp IN (SELECT grp FROM batch)", b))
	})
}

// Keep saves messages that are new. Of several with one id the first is kept.
func (s *Store) Keep(ctx context.Context, all []InboxMessage) error {
	first := db.FirstOfEach(all, func(a, b InboxMessage) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Relay, b.Relay), cmp.Compare(a.Message.ID, b.Message.ID))
	})
	b := db.BatchOf("account, relay, id, received, doc", first, func(k *InboxMessage) []any {
		return []any{k.Account, k.Relay, k.Message.ID, db.Nanos(k.Message.ReceivedAt), db.JSON(k)}
	})
	return s.db.Run(ctx, "inbox", `
INSERT INTO inbox (account, relay, id, received, doc, expires)
SELECT account, relay, id, received, doc, 0 FROM batch WHERE true
ON CONFLICT (account, relay, id) DO UPDATE SET received = excluded.received, doc = excluded.doc, expires = 0
WHERE inbox.expires > 0 AND inbox.expires <= $1`, s.db.Now(), b)
}

// Read returns a run of the messages of a relay, oldest first, and how many
// there are.
func (s *Store) Read(ctx context.Context, acct relay.AccountID, relayID string, offset, limit int) ([]InboxMessage, int, error) {
	noun := "inbox of relay " + relayID
	total, err := db.Value[int](ctx, s.db, noun, `
SELECT count(*) FROM inbox WHERE account = $1 AND relay = $2 AND expires = 0`, acct, relayID)
	if err != nil || total <= offset || limit <= 0 {
		return nil, total, err
	}
	out, err := db.List(ctx, s.db, noun, `
SELECT doc FROM inbox WHERE account = $1 AND relay = $2 AND expires = 0
ORDER BY received, id LIMIT $3 OFFSET $4`, db.Doc[InboxMessage], acct, relayID, limit, offset)
	return out, total, err
}

// Acknowledge removes a message; relay.KindNotFound if there is none. The sum keeps the
// engine from the index of all messages of the relay.
func (s *Store) Acknowledge(ctx context.Context, acct relay.AccountID, relayID, id string, remember time.Duration) error {
	return db.MustChange(ctx, s.db, "message "+id, `
UPDATE inbox SET doc = '', expires = $1 WHERE account = $2 AND relay = $3 AND id = $4 AND expires + 0 = 0`, s.db.Now().Add(remember), acct, relayID, id)
}

// Claim takes each key for its holder, unless another has it, and returns who
// has each. A holder that claims again finds itself: what a crash left half done
// is then finished instead of dropped.
func (s *Store) Claim(ctx context.Context, claims []Claim, ttl time.Duration) ([]string, error) {
	const noun = "carrier ids"
	first := db.FirstOfEach(claims, func(a, b Claim) int { return cmp.Compare(a.Key, b.Key) })
	b := db.BatchOf("id, holder", first, func(c *Claim) []any { return []any{c.Key, c.Holder} })
	now := s.db.Now()
	n, err := s.db.Exec(ctx, noun, `
INSERT INTO carrier_id (id, holder, expires)
SELECT id, holder, $1 FROM batch WHERE true
ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
WHERE carrier_id.expires <= $2`, now.Add(ttl), now, b)
	if err != nil {
		return nil, err
	}
	held := make(map[string]string, len(first))
	for _, c := range first {
		held[c.Key] = c.Holder
	}
	if int(n) < len(first) { // rarely: others have some
		if held, err = db.Map[string, string](ctx, s.db, noun, `
SELECT id, holder FROM carrier_id WHERE id IN (SELECT id FROM batch)`, b); err != nil {
			return nil, err
		}
		if len(held) < len(first) { // one has expired since
			return s.Claim(ctx, claims, ttl)
		}
	}
	out := make([]string, len(claims))
	for i, c := range claims {
		out[i] = held[c.Key]
	}
	return out, nil
}

// Holder returns the holder of a key, "" if there is none.
func (s *Store) Holder(ctx context.Context, key string) (string, error) {
	return db.OrZero(db.Value[string](ctx, s.db, "carrier id "+key, `
SELECT holder FROM carrier_id WHERE id = $1 AND expires > $2`, key, s.db.Now()))
}
