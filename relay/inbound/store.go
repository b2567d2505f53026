package inbound

import (
	"cmp"
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Claim assigns a carrier's id to a message.
type Claim struct {
	Key       string // see carrierIDKey
	MessageID string // the id of the message
}

// InboxMessage is a message in the inbox of a relay.
type InboxMessage struct {
	Account relay.AccountID `json:"account"`
	Relay   string          `json:"relay"`
	// Labels are the parameters of the relay's inbox action at the time of receipt.
	Labels  []string `json:"labels,omitempty"`
	Message Message  `json:"message"`
}

// Store stores relays, carriers' ids of messages, inboxes and parts. All gateways on one database
// share them.
type Store struct{ db *db.DB }

// NewStore returns the store of a database.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// maxSweptGroups is the largest number of groups of parts that one transaction of Sweep
// deletes.
const maxSweptGroups = 1000

// Sweep deletes the rows that have expired: ids assigned by carriers, acknowledgements, parked
// messages and groups of parts.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	const label = "sweep of inbound messages"
	const selectGroups = `
		SELECT grp
		FROM part_group
		WHERE due = 0 AND expires <= $1
		  AND NOT EXISTS (SELECT 1 FROM part_ready WHERE part_ready.grp = part_group.grp)
		ORDER BY expires
		LIMIT $2 {skip locked}`
	for _, t := range []struct{ table, key string }{{"carrier_id", "id"}, {"inbox", "account, relay, id"}, {"part_parked", "grp, event"}} {
		if err := s.db.SweepExpired(ctx, label, t.table, t.key, "expires", now); err != nil {
			return err
		}
	}
	return s.db.Repeat(ctx, label, maxSweptGroups, func(ctx context.Context, tx *db.Tx) (int, error) {
		expired, err := db.Values[string](ctx, tx, label, selectGroups, now, maxSweptGroups)
		if err != nil {
			return 0, err
		}
		rows := db.Column("grp", expired)
		return len(expired), tx.RunAll(ctx, label,
			db.Do("DELETE FROM part WHERE grp IN (SELECT grp FROM batch)", rows),
			db.Do("DELETE FROM part_group WHERE grp IN (SELECT grp FROM batch)", rows))
	})
}

// Keep saves messages in the inboxes of their relays. It skips messages that are in the inbox and
// messages whose acknowledgement is stored.
func (s *Store) Keep(ctx context.Context, messages []InboxMessage) error {
	const upsert = `
		INSERT INTO inbox (account, relay, id, received, doc, expires)
		SELECT account, relay, id, received, doc, 0
		FROM batch
		WHERE true
		ON CONFLICT (account, relay, id) DO UPDATE SET received = excluded.received, doc = excluded.doc, expires = 0
		WHERE inbox.expires > 0 AND inbox.expires <= $1`
	unique := db.FirstOfEach(messages, func(a, b InboxMessage) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Relay, b.Relay), cmp.Compare(a.Message.ID, b.Message.ID))
	})
	rows := db.BatchOf("account, relay, id, received, doc", unique, func(m *InboxMessage) []any {
		return []any{m.Account, m.Relay, m.Message.ID, db.Nanos(m.Message.ReceivedAt), db.JSON(m)}
	})
	return s.db.Run(ctx, "inbox", upsert, s.db.Now(), rows)
}

// Read returns a page of the messages in the inbox of a relay, oldest first, and their
// total.
func (s *Store) Read(ctx context.Context, acct relay.AccountID, relayID string, offset, limit int) ([]InboxMessage, int, error) {
	const count = `
		SELECT COUNT(*)
		FROM inbox
		WHERE account = $1 AND relay = $2 AND expires = 0`
	const query = `
		SELECT doc
		FROM inbox
		WHERE account = $1 AND relay = $2 AND expires = 0
		ORDER BY received, id
		LIMIT $3 OFFSET $4`
	label := "inbox of relay " + relayID
	total, err := db.Value[int](ctx, s.db, label, count, acct, relayID)
	if err != nil || total <= offset || limit <= 0 {
		return nil, total, err
	}
	messages, err := db.List(ctx, s.db, label, query, db.Doc[InboxMessage], acct, relayID, limit, offset)
	return messages, total, err
}

// Acknowledge removes a message from an inbox and stores its id for retention. It returns
// relay.KindNotFound if the inbox does not have the message.
func (s *Store) Acknowledge(ctx context.Context, acct relay.AccountID, relayID, id string, retention time.Duration) error {
	// With expires + 0 the engine does not use the index of all messages of the relay.
	const update = `
		UPDATE inbox
		SET doc = '', expires = $1
		WHERE account = $2 AND relay = $3 AND id = $4
		  AND expires + 0 = 0`
	return db.MustChange(ctx, s.db, "message "+id, update, s.db.Now().Add(retention), acct, relayID, id)
}

// Claim assigns each key to its message for ttl, unless another message has the key, and returns the id
// of the message that has each key, in order. A message may claim its key again, so that a message that
// a crash interrupted is completed and not dropped.
func (s *Store) Claim(ctx context.Context, claims []Claim, ttl time.Duration) ([]string, error) {
	const label = "carrier ids"
	const upsert = `
		INSERT INTO carrier_id (id, holder, expires)
		SELECT id, holder, $1
		FROM batch
		WHERE true
		ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
		WHERE carrier_id.expires <= $2`
	const query = `
		SELECT id, holder
		FROM carrier_id
		WHERE id IN (SELECT id FROM batch)`
	unique := db.FirstOfEach(claims, func(a, b Claim) int { return cmp.Compare(a.Key, b.Key) })
	rows := db.BatchOf("id, holder", unique, func(c *Claim) []any { return []any{c.Key, c.MessageID} })
	now := s.db.Now()
	n, err := s.db.Exec(ctx, label, upsert, now.Add(ttl), now, rows)
	if err != nil {
		return nil, err
	}
	messageByKey := make(map[string]string, len(unique))
	for _, c := range unique {
		messageByKey[c.Key] = c.MessageID
	}
	if int(n) < len(unique) { // rarely: some keys were assigned before
		if messageByKey, err = db.Map[string, string](ctx, s.db, label, query, rows); err != nil {
			return nil, err
		}
		if len(messageByKey) < len(unique) { // a key has expired since
			return s.Claim(ctx, claims, ttl)
		}
	}
	firstIDs := make([]string, len(claims))
	for i, c := range claims {
		firstIDs[i] = messageByKey[c.Key]
	}
	return firstIDs, nil
}

// FirstMessageID returns the id of the first message with a key, or "".
func (s *Store) FirstMessageID(ctx context.Context, key string) (string, error) {
	const query = "SELECT holder FROM carrier_id WHERE id = $1 AND expires > $2"
	return db.OrZero(db.Value[string](ctx, s.db, "carrier id "+key, query, key, s.db.Now()))
}
