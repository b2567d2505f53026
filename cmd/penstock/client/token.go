package client

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Token manages the tokens of accounts.
type Token struct {
	Add    tokenAddCommand    `cmd:"" help:"Make a token for an account and print it. It is shown once."`
	List   tokenListCommand   `cmd:"" help:"List the tokens of an account, or of all."`
	Revoke tokenRevokeCommand `cmd:"" help:"Revoke a token, at every gateway."`
}

// shownToken is a token as the admin API lists it.
type shownToken struct {
	ID        string   `json:"id"`
	Account   int64    `json:"account"`
	Scopes    []string `json:"scopes"`
	Source    string   `json:"source"`
	CreatedAt *string  `json:"created_at"`
	Document  *string  `json:"document"`
	Token     string   `json:"token"`
}

type tokenAddCommand struct {
	Account string   `required:"" help:"The account's name or id." placeholder:"ACCOUNT"`
	Scopes  []string `help:"Of messaging, cellular, iot, ledger, webhook and carrier; default: the first four." placeholder:"SCOPE"`
	Source  string   `help:"Names the token in the path, for senders that only sign." placeholder:"NAME"`
	Secret  bool     `help:"Verify signatures with a secret, read from standard input or entered at a prompt."`
	Flags
}

// Run makes the token. Standard output has nothing but its text, for scripts.
func (a tokenAddCommand) Run(w Environment) error {
	body := map[string]any{"account": a.Account, "scopes": a.Scopes, "source": a.Source}
	if a.Secret {
		secret, err := readPassword(w, "Secret of the signatures")
		if err != nil {
			return err
		}
		body["secret"] = secret
	}
	made, err := ask[shownToken](a.Flags, w, "the token", http.MethodPost, "/admin/tokens", body, http.StatusCreated)
	if err != nil {
		return err
	}
	if a.JSON {
		return nil
	}
	_, _ = fmt.Fprintf(w.Stderr, "token %s of account %s may use %s; it is not shown again:\n", made.ID, a.Account, strings.Join(made.Scopes, ", "))
	return printLine(w, "%s", made.Token)
}

type tokenListCommand struct {
	Account string `help:"The account's name or id; default: all accounts." placeholder:"ACCOUNT"`
	Flags
}

// Run prints a table.
func (l tokenListCommand) Run(w Environment) error {
	list, err := ask[[]shownToken](l.Flags, w, "list tokens", http.MethodGet, "/admin/tokens?"+url.Values{"account": {l.Account}}.Encode(), nil)
	if err != nil {
		return err
	}
	if l.JSON {
		return nil
	}
	names, err := l.accountNames(w)
	if err != nil {
		return err
	}
	const none = "there are no tokens; add one with: penstock token add --account ACCOUNT"
	return printRecords(w, list, none, []string{"ID", "ACCOUNT", "SCOPES", "SOURCE", "CREATED", "DOCUMENT"}, func(t shownToken) []string {
		return []string{t.ID, names[t.Account], strings.Join(t.Scopes, ","), orDash(&t.Source), orDash(t.CreatedAt), orDash(t.Document)}
	})
}

func orDash(text *string) string {
	if text == nil || *text == "" {
		return "-"
	}
	return *text
}

// accountNames returns the names of all accounts by id.
func (a Flags) accountNames(w Environment) (map[int64]string, error) {
	list, err := ask[[]struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	}](a, w, "list accounts", http.MethodGet, "/admin/accounts", nil)
	names := make(map[int64]string, len(list))
	for _, one := range list {
		names[one.ID] = one.Name
	}
	return names, err
}

type tokenRevokeCommand struct {
	ID string `arg:"" help:"The token's id, as token list shows it."`
	Flags
}

// Run revokes the token.
func (r tokenRevokeCommand) Run(w Environment) error {
	oldShownToken, err := ask[shownToken](r.Flags, w, "token "+r.ID, http.MethodDelete, "/admin/tokens/"+url.PathEscape(r.ID), nil)
	if err != nil {
		return err
	}
	if oldShownToken.Document != nil {
		_, _ = fmt.Fprintf(w.Stderr, "the document %s declared it: remove it there too, or the next apply brings it back\n", *oldShownToken.Document)
	}
	if r.JSON {
		return nil
	}
	return printLine(w, "token %s revoked", oldShownToken.ID)
}
