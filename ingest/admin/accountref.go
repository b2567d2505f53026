package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// AccountRef names an account: its id, or its name. In JSON it is a number or a text.
type AccountRef string

// UnmarshalJSON reads a number or a text.
func (r *AccountRef) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*r = AccountRef(text)
		return nil
	}
	var id int64
	if json.Unmarshal(raw, &id) != nil {
		return errors.New("want an account's name or id")
	}
	*r = AccountRef(strconv.FormatInt(id, 10))
	return nil
}

// accountID finds the account that is named; 0 if none is. An id is taken as it is.
// An unknown name is relay.KindInvalid.
func (s *Surface) accountID(ctx context.Context, r AccountRef) (account.ID, error) {
	if r == "" {
		return 0, nil
	}
	if n, err := strconv.ParseInt(string(r), 10, 64); err == nil {
		return account.ID(n), nil
	}
	a, err := s.Accounts.AccountByName(ctx, string(r))
	if relay.KindOf(err) == relay.KindNotFound {
		return 0, relay.Invalid("account", fmt.Sprintf("want an account's name or id, got %q", string(r)))
	}
	return a.ID, err
}
