package client

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Token manages the tokens of accounts.
type Token struct {
	Add    tokenAddCommand    `cmd:"" help:"Create a token for an account and print it. It is shown only once."`
	List   tokenListCommand   `cmd:"" help:"List the tokens of an account, or of all accounts."`
	Revoke tokenRevokeCommand `cmd:"" help:"Revoke a token at all gateways."`
}

// tokenView is a token in the answers of the admin API.
type tokenView struct {
	ID        string   `json:"id"`
	Account   int64    `json:"account"`
	Scopes    []string `json:"scopes"`
	Source    string   `json:"source"`
	CreatedAt *string  `json:"created_at"`
	Document  *string  `json:"document"`
	Token     string   `json:"token"` // of a new token only
}

type tokenAddCommand struct {
	Account string   `required:"" help:"The account's name or id." placeholder:"ACCOUNT"`
	Scopes  []string `help:"Any of messaging, cellular, iot, ledger, webhook and carrier; default: the first four." placeholder:"SCOPE"`
	Source  string   `help:"The name that selects the token in the path of a webhook, for senders that only sign." placeholder:"NAME"`
	Secret  bool     `help:"Verify signatures with a secret, read from standard input or entered at a prompt."`
	Flags
}

// Run creates the token. It prints only the token to standard output, for scripts.
func (a tokenAddCommand) Run(env Environment) error {
	fields := map[string]any{"account": a.Account, "scopes": a.Scopes, "source": a.Source}
	if a.Secret {
		secret, err := readPassword(env, "Secret of the signatures")
		if err != nil {
			return err
		}
		fields["secret"] = secret
	}
	return show(a.Flags, env, "the token", http.MethodPost, "/admin/tokens", fields, func(added tokenView) error {
		_, _ = fmt.Fprintf(env.Stderr, "token %s of account %s may use %s; it is not shown again:\n", added.ID, a.Account, strings.Join(added.Scopes, ", "))
		return printLine(env, "%s", added.Token)
	})
}

type tokenListCommand struct {
	Account string `help:"The account's name or id; default: all accounts." placeholder:"ACCOUNT"`
	Flags
}

// Run prints a table.
func (l tokenListCommand) Run(env Environment) error {
	const noTokens = "there are no tokens; add one with: penstock token add --account ACCOUNT"
	head := []string{"ID", "ACCOUNT", "SCOPES", "SOURCE", "CREATED", "DOCUMENT"}
	target := "/admin/tokens?" + url.Values{"account": {l.Account}}.Encode()
	return show(l.Flags, env, "list tokens", http.MethodGet, target, nil, func(tokens []tokenView) error {
		names, err := l.accountNames(env)
		if err != nil {
			return err
		}
		return printRecords(env, tokens, noTokens, head, func(t tokenView) []string {
			return []string{t.ID, names[t.Account], strings.Join(t.Scopes, ","), orDash(&t.Source), orDash(t.CreatedAt), orDash(t.Document)}
		})
	})
}

func orDash(text *string) string {
	if text == nil || *text == "" {
		return "-"
	}
	return *text
}

// accountNames returns the names of all accounts by id.
func (f Flags) accountNames(env Environment) (map[int64]string, error) {
	names := make(map[int64]string)
	type account struct {
		ID   int64
		Name string
	}
	err := show(f, env, "list accounts", http.MethodGet, "/admin/accounts", nil, func(accounts []account) error {
		for _, a := range accounts {
			names[a.ID] = a.Name
		}
		return nil
	})
	return names, err
}

type tokenRevokeCommand struct {
	ID string `arg:"" help:"The id of the token, which token list shows."`
	Flags
}

// Run revokes the token.
func (r tokenRevokeCommand) Run(env Environment) error {
	return show(r.Flags, env, "token "+r.ID, http.MethodDelete, "/admin/tokens/"+url.PathEscape(r.ID), nil, func(revoked tokenView) error {
		if revoked.Document != nil {
			_, _ = fmt.Fprintf(env.Stderr, "the document %s declared it: remove it there too, or the next apply brings it back\n", *revoked.Document)
		}
		return printLine(env, "token %s revoked", revoked.ID)
	})
}
