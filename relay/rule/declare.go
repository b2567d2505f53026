package rule

import (
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// Declare saves a rule under its id: a new one, or in the place of the one that is
// there. It does not ask whether the gateway may call its URLs: an inventory has been
// checked before, and the demo's is our own. It returns relay.KindInvalid as Create
// does.
func (s *Service) Declare(ctx context.Context, acct account.ID, r Rule) error {
	now := s.o.Now().UTC()
	if _, err := Compile(&r); err != nil {
		return err
	}
	_, err := s.deps.Store.Change(ctx, acct, r.ID, func(stored *Rule) error {
		created := stored.CreatedAt
		*stored = r
		stored.CreatedAt, stored.UpdatedAt = created, now
		return nil
	}, startsAnew, now)
	if relay.KindOf(err) != relay.KindNotFound {
		return err
	}
	r.CreatedAt, r.UpdatedAt = now, now
	return s.deps.Store.Create(ctx, acct, r)
}
