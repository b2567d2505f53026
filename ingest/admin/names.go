package admin

import (
	"context"
	"strings"

	"github.com/penstock/penstock/relay/account"
)

// accountNames returns the accounts' names by id.
func (s *Surface) accountNames(ctx context.Context) (map[account.ID]string, error) {
	all, err := s.Accounts.Accounts(ctx)
	out := make(map[account.ID]string, len(all))
	for _, a := range all {
		out[a.ID] = a.Name
	}
	return out, err
}

// namedLike returns the accounts whose name holds a text, in any case.
func namedLike(names map[account.ID]string, text string) (out []account.ID) {
	for id, name := range names {
		if text != "" && strings.Contains(strings.ToLower(name), strings.ToLower(text)) {
			out = append(out, id)
		}
	}
	return out
}
