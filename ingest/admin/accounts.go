package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/user"
)

type accountJSON struct {
	ID            relay.AccountID `json:"id"`
	Name          string          `json:"name"`
	Permissions   []string        `json:"permissions"`
	CallbackURL   string          `json:"callback_url"` // "" for none
	Signed        bool            `json:"signed"`       // the account has a webhook secret
	Credit        int64           `json:"credit"`
	Document      *string         `json:"document"` // the inventory document that declares the account; null for none
	Undecryptable bool            `json:"unopened,omitempty"`
}

// accountsOf returns accounts for an answer. The secret parts of URLs are masked. The path is masked
// too if the caller may not read texts of messages.
func (s *Surface) accountsOf(c *fiber.Ctx, accounts ...account.Account) ([]accountJSON, error) {
	ids := httpd.Each(accounts, func(a account.Account) relay.AccountID { return a.ID })
	balances, err := s.Credit.Balances(c.UserContext(), ids)
	if err != nil {
		return nil, err
	}
	owners, err := s.Inventory.Owners(c.UserContext())
	if err != nil {
		return nil, err
	}
	return httpd.Each(accounts, func(a account.Account) accountJSON {
		view := accountJSON{
			ID: a.ID, Name: a.Name, Permissions: append([]string{}, a.Permissions...), CallbackURL: outbox.MaskTarget(a.CallbackURL),
			Signed: len(a.WebhookSecrets) > 0, Credit: balances[a.ID], Undecryptable: a.Undecryptable,
			Document: httpd.OrNull(owners.OwnerOf(inventory.Account{ID: int64(a.ID), Name: a.Name})),
		}
		if hidesTexts(c) {
			view.CallbackURL = outbox.MaskPath(a.CallbackURL)
		}
		return view
	}), nil
}

// listAccounts lists the accounts that the sender of the request may see, by id.
func (s *Surface) listAccounts(c *fiber.Ctx) error {
	accounts, err := s.Accounts.Accounts(c.UserContext())
	if err != nil {
		return err
	}
	accounts = slices.DeleteFunc(accounts, func(a account.Account) bool { return !sees(c, a.ID) })
	views, err := s.accountsOf(c, accounts...)
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": views})
}

// pathAccount returns the account whose name or id is in the path of a request.
func (s *Surface) pathAccount(c *fiber.Ctx) (account.Account, error) {
	ref := AccountRef(params.Path(c, "account"))
	id, err := s.findAccount(c.UserContext(), ref)
	if relay.KindOf(err) == relay.KindInvalid || err == nil && !sees(c, id) {
		err = relay.Errorf(relay.KindNotFound, "account %s: not found", ref)
	}
	if err != nil {
		return account.Account{}, err
	}
	return s.Accounts.Account(c.UserContext(), id)
}

func (s *Surface) sendAccount(c *fiber.Ctx, status int, a account.Account) error {
	views, err := s.accountsOf(c, a)
	if err != nil {
		return err
	}
	return c.Status(status).JSON(fiber.Map{"data": views[0]})
}

func (s *Surface) showAccount(c *fiber.Ctx) error {
	a, err := s.pathAccount(c)
	if err != nil {
		return err
	}
	return s.sendAccount(c, fiber.StatusOK, a)
}

func (s *Surface) addAccount(c *fiber.Ctx) error {
	var form struct {
		Name           string   `json:"name"`
		Credit         int64    `json:"credit"`
		Permissions    []string `json:"permissions"`
		CallbackURL    string   `json:"callback_url"`
		WebhookSecrets []string `json:"webhook_secret"`
	}
	if err := readJSON(c, maxForm, &form); err != nil {
		return err
	}
	a, err := s.Inventory.AddAccount(c.UserContext(), account.Account{
		Name: form.Name, Permissions: form.Permissions, CallbackURL: form.CallbackURL, WebhookSecrets: form.WebhookSecrets,
	}, form.Credit)
	if err != nil {
		return err
	}
	n := httpd.NoteOf(c)
	n.Target, n.Account = a.Name, a.ID
	return s.sendAccount(c, fiber.StatusCreated, a)
}

func (s *Surface) changeAccount(c *fiber.Ctx) error {
	var form struct {
		Permissions    *[]string `json:"permissions"`
		CallbackURL    *string   `json:"callback_url"`
		WebhookSecrets *[]string `json:"webhook_secret"`
	}
	if err := readJSON(c, maxForm, &form); err != nil {
		return err
	}
	a, err := s.pathAccount(c)
	if err != nil {
		return err
	}
	oldAccount, newAccount, err := s.Inventory.ChangeAccount(c.UserContext(), a.ID, func(a *account.Account) {
		relay.Assign(&a.Permissions, form.Permissions)
		relay.Assign(&a.CallbackURL, form.CallbackURL)
		relay.Assign(&a.WebhookSecrets, form.WebhookSecrets)
	})
	if err != nil {
		return err
	}
	n := httpd.NoteOf(c)
	n.Target, n.Account, n.Before, n.After = a.Name, a.ID, oldAccount, newAccount
	return s.sendAccount(c, fiber.StatusOK, newAccount)
}

func (s *Surface) removeAccount(c *fiber.Ctx) error {
	a, err := s.pathAccount(c)
	if err != nil {
		return err
	}
	n := httpd.NoteOf(c)
	n.Target, n.Account = a.Name, a.ID
	if a, err = s.Inventory.RemoveAccount(c.UserContext(), a.ID); err != nil {
		return err
	}
	n.Before = a
	return c.SendStatus(fiber.StatusNoContent)
}

func (s *Surface) accountNames(ctx context.Context) (map[relay.AccountID]string, error) {
	accounts, err := s.Accounts.Accounts(ctx)
	names := make(map[relay.AccountID]string, len(accounts))
	for _, a := range accounts {
		names[a.ID] = a.Name
	}
	return names, err
}

// namesIfValid returns the accounts' names by id, or the problems of the parameters.
func (s *Surface) namesIfValid(sel *selection) (map[relay.AccountID]string, error) {
	if err := sel.Err(); err != nil {
		return nil, err
	}
	return s.accountNames(sel.c.UserContext())
}

// findWithNames returns the accounts' names by id and the records that find returns, or the problems
// of the parameters.
func findWithNames[F, T any](s *Surface, sel *selection, f F, find func(context.Context, F) ([]T, error)) (names map[relay.AccountID]string, found []T, err error) {
	if names, err = s.namesIfValid(sel); err != nil {
		return nil, nil, err
	}
	found, err = find(sel.c.UserContext(), f)
	return names, found, err
}

// AccountRef is the id or the name of an account. In JSON it is a number or a string.
type AccountRef string

// UnmarshalJSON accepts a number or a string.
func (r *AccountRef) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*r = AccountRef(text)
		return nil
	}
	var id int64
	if json.Unmarshal(raw, &id) != nil {
		return errors.New("an account must be a name or an id")
	}
	*r = AccountRef(strconv.FormatInt(id, 10))
	return nil
}

// accountID returns the id of the account that a request refers to, or 0 for an empty reference.
// It does not check that an id exists. The error for an unknown name is relay.KindInvalid. For a
// user of the role account, the default is the user's account, and the error for another account
// is relay.KindForbidden.
func (s *Surface) accountID(c *fiber.Ctx, r AccountRef) (relay.AccountID, error) {
	id, err := s.findAccount(c.UserContext(), r)
	p := principalOf(c)
	switch {
	case p.Role != user.Account:
		return id, err
	case r == "" || err == nil && id == p.Account:
		return p.Account, nil
	}
	return p.Account, relay.Errorf(relay.KindForbidden, "A user with the role account may see only its own account.")
}

// findAccount returns the id of an account, or 0 for an empty reference.
func (s *Surface) findAccount(ctx context.Context, r AccountRef) (relay.AccountID, error) {
	if r == "" {
		return 0, nil
	}
	if n, err := strconv.ParseUint(string(r), 10, 63); err == nil {
		return relay.AccountID(n), nil //nolint:gosec // 63 bits
	}
	a, err := s.Accounts.AccountByName(ctx, string(r))
	if relay.KindOf(err) == relay.KindNotFound {
		return 0, relay.Invalid("account", fmt.Sprintf("There is no account named %q.", string(r)))
	}
	return a.ID, err
}

// tokenJSON is a token without its text, which is not stored.
type tokenJSON struct {
	ID        string          `json:"id"`
	Account   relay.AccountID `json:"account"`
	Scopes    []account.Scope `json:"scopes"`
	Source    string          `json:"source"` // "" for none
	Signed    bool            `json:"signed"`
	CreatedAt *string         `json:"created_at"` // null if an inventory declared it
	Document  *string         `json:"document"`   // null if no document declares it
}

func tokenOf(t account.DeclaredToken) tokenJSON {
	return tokenJSON{
		ID: t.ID(), Account: t.Account, Scopes: t.Scopes, Source: t.Source, Signed: t.Secret != "", CreatedAt: formatTimeOrNil(t.CreatedAt),
		Document: httpd.OrNull(t.Document),
	}
}

func (s *Surface) listTokens(c *fiber.Ctx, sel *selection) error {
	acct := sel.account()
	if err := sel.Err(); err != nil {
		return err
	}
	declaredTokens, err := s.Inventory.Tokens(c.UserContext(), acct)
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": httpd.Each(declaredTokens, tokenOf)})
}

// addToken adds a token and answers with its text. No other answer has the text.
func (s *Surface) addToken(c *fiber.Ctx) error {
	var form struct {
		Account AccountRef `json:"account"`
		Scopes  []string   `json:"scopes"`
		Source  string     `json:"source"`
		Secret  string     `json:"secret"`
	}
	if err := readJSON(c, maxForm, &form); err != nil {
		return err
	}
	acct, err := s.existingAccount(c, form.Account)
	if err == nil && acct == 0 {
		err = relay.Invalid("account", "The account field is required.")
	}
	if err != nil {
		return err
	}
	text, token, err := s.Inventory.AddToken(c.UserContext(), acct, form.Scopes, form.Source, form.Secret)
	if err != nil {
		return err
	}
	view := tokenOf(account.DeclaredToken{Token: token})
	n := httpd.NoteOf(c)
	n.Target, n.Account, n.After = view.ID, acct, view
	return c.Status(fiber.StatusCreated).JSON(fiber.Map{"data": struct {
		tokenJSON
		Token string `json:"token"`
	}{view, text}})
}

func (s *Surface) revokeToken(c *fiber.Ctx) error {
	token, err := s.Inventory.RevokeToken(c.UserContext(), params.Path(c, "token_id"))
	if err != nil {
		return err
	}
	n := httpd.NoteOf(c)
	n.Target, n.Account, n.Before = token.ID(), token.Account, tokenOf(token)
	return c.JSON(fiber.Map{"data": tokenOf(token)})
}
