package inbound

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/relay/account"
)

// Ref names a relay among those of all accounts.
type Ref struct {
	Account account.ID
	Kind    Kind
	ID      string
}

// scanPage is how many relays Find reads at a time.
const scanPage = 500

// Find returns at most limit relays of an account, 0 for all accounts, that keep
// accepts, by account, kind and id, beginning after one.
func (s *RelayService) Find(ctx context.Context, acct account.ID, after Ref, limit int, keep func(Relay) bool) (found []Relay, err error) {
	for {
		page, err := s.Records.Scan(ctx, acct, after, scanPage)
		if err != nil {
			return nil, fmt.Errorf("inbound: find: %w", err)
		}
		for _, r := range page {
			if keep(r) {
				found = append(found, r)
			}
			if len(found) == limit {
				return found, nil
			}
		}
		if len(page) < scanPage {
			return found, nil
		}
		after = page[len(page)-1].Ref()
	}
}

// Ref names the relay.
func (r Relay) Ref() Ref { return Ref{r.Account, r.Kind, r.ID} }
