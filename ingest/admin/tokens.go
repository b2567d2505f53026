package admin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// tokenJSON is a token in the form for the admin: without its text, which is not kept.
type tokenJSON struct {
	ID        string          `json:"id"`
	Account   relay.AccountID `json:"account"`
	Scopes    []account.Scope `json:"scopes"`
	Source    string          `json:"source"` // "" for none
	Signed    bool            `json:"signed"`
	CreatedAt *string         `json:"created_at"` // null if an inventory declared it
	Document  *string         `json:"document"`   // null for none
}

func tokenOf(t account.DeclaredToken) tokenJSON {
	view := tokenJSON{
		ID: t.ID(), Account: t.Account, Scopes: t.Scopes, Source: t.Source, Signed: t.Secret != "", CreatedAt: formatTimeOrNil(t.CreatedAt),
	}
	if t.Document != "" {
		view.Document = &t.Document
	}
	return view
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

// addToken answers with the text of the token, which is not shown again.
func (s *Surface) addToken(c *fiber.Ctx) error {
	var in struct {
		Account AccountRef `json:"account"`
		Scopes  []string   `json:"scopes"`
		Source  string     `json:"source"`
		Secret  string     `json:"secret"`
	}
	if err := readJSON(c, maxForm, &in); err != nil {
		return err
	}
	acct, err := s.existingAccount(c, in.Account)
	if err == nil && acct == 0 {
		err = relay.Invalid("account", "want an account's name or id")
	}
	if err != nil {
		return err
	}
	text, made, err := s.Inventory.AddToken(c.UserContext(), acct, in.Scopes, in.Source, in.Secret)
	if err != nil {
		return err
	}
	view := tokenOf(account.DeclaredToken{Token: made})
	n := httpd.NoteOf(c)
	n.Target, n.Account, n.After = view.ID, acct, view
	return c.Status(fiber.StatusCreated).JSON(fiber.Map{"data": struct {
		tokenJSON
		Token string `json:"token"`
	}{view, text}})
}

func (s *Surface) revokeToken(c *fiber.Ctx) error {
	oldDeclaredToken, err := s.Inventory.RevokeToken(c.UserContext(), params.Path(c, "token_id"))
	if err != nil {
		return err
	}
	n := httpd.NoteOf(c)
	n.Target, n.Account, n.Before = oldDeclaredToken.ID(), oldDeclaredToken.Account, tokenOf(oldDeclaredToken)
	return c.JSON(fiber.Map{"data": tokenOf(oldDeclaredToken)})
}
