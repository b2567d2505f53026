package inbound

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/sqlstore"
)

const (
	keepMessages = `
INSERT INTO inbox (account, relay, id, received, doc, expires)
SELECT account, relay, id, received, doc, 0 FROM batch WHERE true
ON CONFLICT (account, relay, id) DO UPDATE SET received = excluded.received, doc = excluded.doc, expires = 0
WHERE inbox.expires > 0 AND inbox.expires <= $1`

	countInbox = `
SELECT count(*) FROM inbox WHERE account = $1 AND relay = $2 AND expires = 0`

	readInbox = `
SELECT doc FROM inbox WHERE account = $1 AND relay = $2 AND expires = 0
ORDER BY received, id LIMIT $3 OFFSET $4`

	acknowledgeMessage = `
UPDATE inbox SET doc = '', expires = $1 WHERE account = $2 AND relay = $3 AND id = $4 AND expires = 0`
)

// inboxKey names a message in an inbox.
type inboxKey struct {
	account account.ID
	relay   string
	id      string
}

func keyOf(k *inbound.Kept) inboxKey { return inboxKey{k.Account, k.Relay, k.Message.ID} }

func (k inboxKey) compare(other inboxKey) int {
	return cmp.Or(cmp.Compare(k.account, other.account), cmp.Compare(k.relay, other.relay), cmp.Compare(k.id, other.id))
}

// Keep saves messages that are new. Of several with one id the first is kept.
func (s *Store) Keep(ctx context.Context, all []inbound.Kept) error {
	if len(all) == 0 {
		return nil
	}
	const noun = "inbox"
	order := make([]*inbound.Kept, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortStableFunc(order, func(a, b *inbound.Kept) int { return keyOf(a).compare(keyOf(b)) })
	order = slices.CompactFunc(order, func(a, b *inbound.Kept) bool { return keyOf(a) == keyOf(b) })
	b := sqlstore.NewBatch("account bigint, relay text, id text, received bigint, doc text")
	for _, k := range order {
		doc, err := sqlstore.Encode(k)
		if err != nil {
			return fmt.Errorf("message %s: encode: %w", k.Message.ID, err)
		}
		b.Add(int64(k.Account), k.Relay, k.Message.ID, k.Message.ReceivedAt, doc)
	}
	_, err := s.db.Exec(ctx, noun, keepMessages, sqlstore.Millis(s.db.Now()), b)
	return err
}

// Read returns a run of the messages of a relay, oldest first, and how many
// there are.
func (s *Store) Read(ctx context.Context, acct account.ID, relayID string, offset, limit int) ([]inbound.Kept, int, error) {
	noun := "inbox of relay " + relayID
	total, err := sqlstore.Value[int](ctx, s.db, noun, countInbox, int64(acct), relayID)
	if err != nil || total <= offset || limit <= 0 {
		return nil, total, err
	}
	out, err := sqlstore.List(ctx, s.db, noun, readInbox, sqlstore.ScanDoc[inbound.Kept], int64(acct), relayID, int64(limit), int64(offset))
	return out, total, err
}

// Acknowledge removes a message; relay.KindNotFound if there is none.
func (s *Store) Acknowledge(ctx context.Context, acct account.ID, relayID, id string, remember time.Duration) error {
	noun := "message " + id
	n, err := s.db.Exec(ctx, noun, acknowledgeMessage, sqlstore.Millis(s.db.Now().Add(remember)), int64(acct), relayID, id)
	if err == nil && n == 0 {
		err = relay.Errorf(relay.KindNotFound, "%s: not found", noun)
	}
	return err
}
