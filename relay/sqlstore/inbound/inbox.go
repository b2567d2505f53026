package inbound

import (
	"cmp"
	"context"
	"time"

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

// Keep saves messages that are new. Of several with one id the first is kept.
func (s *Store) Keep(ctx context.Context, all []inbound.InboxMessage) error {
	first := sqlstore.FirstOfEach(all, func(a, b inbound.InboxMessage) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Relay, b.Relay), cmp.Compare(a.Message.ID, b.Message.ID))
	})
	b := sqlstore.BatchOf("account bigint, relay text, id text, received bigint, doc text", first, func(k *inbound.InboxMessage) []any {
		return []any{k.Account, k.Relay, k.Message.ID, k.Message.ReceivedAt, sqlstore.JSON(k)}
	})
	_, err := s.db.Exec(ctx, "inbox", keepMessages, s.db.Now(), b)
	return err
}

// Read returns a run of the messages of a relay, oldest first, and how many
// there are.
func (s *Store) Read(ctx context.Context, acct account.ID, relayID string, offset, limit int) ([]inbound.InboxMessage, int, error) {
	noun := "inbox of relay " + relayID
	total, err := sqlstore.Value[int](ctx, s.db, noun, countInbox, acct, relayID)
	if err != nil || total <= offset || limit <= 0 {
		return nil, total, err
	}
	out, err := sqlstore.List(ctx, s.db, noun, readInbox, sqlstore.ScanDoc[inbound.InboxMessage], acct, relayID, limit, offset)
	return out, total, err
}

// Acknowledge removes a message; relay.KindNotFound if there is none.
func (s *Store) Acknowledge(ctx context.Context, acct account.ID, relayID, id string, remember time.Duration) error {
	return sqlstore.MustChange(ctx, s.db, "message "+id, acknowledgeMessage, s.db.Now().Add(remember), acct, relayID, id)
}
