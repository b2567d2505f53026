package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/user"
)

// accountJSON names an account.
type accountJSON struct {
	ID   relay.AccountID `json:"id"`
	Name string          `json:"name"`
}

// listAccounts names the accounts that the request may see, by id.
func (s *Surface) listAccounts(c *fiber.Ctx, sel *selection) error {
	if err := sel.Err(); err != nil {
		return err
	}
	all, err := s.Accounts.Accounts(c.UserContext())
	if err != nil {
		return err
	}
	out := []accountJSON{}
	for _, a := range all {
		if sees(c, a.ID) {
			out = append(out, accountJSON{ID: a.ID, Name: a.Name})
		}
	}
	return c.JSON(fiber.Map{"data": out})
}

// accountNames returns the accounts' names by id.
func (s *Surface) accountNames(ctx context.Context) (map[relay.AccountID]string, error) {
	all, err := s.Accounts.Accounts(ctx)
	out := make(map[relay.AccountID]string, len(all))
	for _, a := range all {
		out[a.ID] = a.Name
	}
	return out, err
}

// checkedNames returns the accounts' names by id, or what is wrong with the fields.
func (s *Surface) checkedNames(sel *selection) (map[relay.AccountID]string, error) {
	if err := sel.Err(); err != nil {
		return nil, err
	}
	return s.accountNames(sel.c.UserContext())
}

// findNamed returns the accounts' names by id and what find finds, or what is wrong with
// the fields.
func findNamed[F, T any](s *Surface, sel *selection, by F, find func(context.Context, F) ([]T, error)) (names map[relay.AccountID]string, found []T, err error) {
	if names, err = s.checkedNames(sel); err != nil {
		return nil, nil, err
	}
	found, err = find(sel.c.UserContext(), by)
	return names, found, err
}

// namedLike returns the accounts whose name holds a text, in any case.
func namedLike(names map[relay.AccountID]string, text string) (out []relay.AccountID) {
	for id, name := range names {
		if text != "" && strings.Contains(strings.ToLower(name), strings.ToLower(text)) {
			out = append(out, id)
		}
	}
	return out
}

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

// accountID finds the account that a request names; 0 if none is. An id is taken as it
// is. An unknown name is relay.KindInvalid. A user of the role account means its own
// account; to name another one is relay.KindForbidden.
func (s *Surface) accountID(c *fiber.Ctx, r AccountRef) (relay.AccountID, error) {
	id, err := s.findAccount(c.UserContext(), r)
	who := principalOf(c)
	switch {
	case who.Role != user.Account:
		return id, err
	case r == "" || err == nil && id == who.Account:
		return who.Account, nil
	}
	return who.Account, relay.Errorf(relay.KindForbidden, "The role account sees its own account only.")
}

// findAccount finds the account that is named; 0 if none is.
func (s *Surface) findAccount(ctx context.Context, r AccountRef) (relay.AccountID, error) {
	if r == "" {
		return 0, nil
	}
	if n, err := strconv.ParseUint(string(r), 10, 63); err == nil {
		return relay.AccountID(n), nil //nolint:gosec // 63 bits
	}
	a, err := s.Accounts.AccountByName(ctx, string(r))
	if relay.KindOf(err) == relay.KindNotFound {
		return 0, relay.Invalid("account", fmt.Sprintf("want an account's name or id, got %q", string(r)))
	}
	return a.ID, err
}
