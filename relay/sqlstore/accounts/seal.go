package accounts

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sqlstore"
)

// Sealer encrypts secrets in the database; vault.Vault implements it.
type Sealer interface {
	Seal(ctx context.Context, acct account.ID, plain []byte, about string) ([]byte, error)
	Open(ctx context.Context, acct account.ID, sealed []byte, about string) ([]byte, error)
}

// sealedPrefix begins a text that is sealed; base64 follows. What was saved before
// there was a Sealer has none, and is sealed when it is saved again.
const sealedPrefix = "sealed:"

// ofGateway seals for the gateway itself: an account may have no id yet.
const ofGateway account.ID = 0

// seal seals a text about something; an empty one stays empty.
func (s *Store) seal(ctx context.Context, text, about string) (string, error) {
	if s.Sealer == nil || text == "" || strings.HasPrefix(text, sealedPrefix) {
		return text, nil
	}
	b, err := s.Sealer.Seal(ctx, ofGateway, []byte(text), about)
	if err != nil {
		return "", fmt.Errorf("%s: %w", about, err)
	}
	return sealedPrefix + base64.StdEncoding.EncodeToString(b), nil
}

// open decrypts data that was sealed with the same context.
func (s *Store) open(ctx context.Context, text, about string) (string, error) {
	encoded, sealed := strings.CutPrefix(text, sealedPrefix)
	if !sealed || s.Sealer == nil {
		return text, nil
	}
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil {
		b, err = s.Sealer.Open(ctx, ofGateway, b, about)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", about, err)
	}
	return string(b), nil
}

// sealing is seal or open.
type sealing func(ctx context.Context, text, about string) (string, error)

// ofAccount passes the secrets of an account through seal or open.
func ofAccount(ctx context.Context, a account.Account, change sealing) (account.Account, error) {
	secrets := make([]string, len(a.WebhookSecrets))
	for i, secret := range a.WebhookSecrets {
		var err error
		if secrets[i], err = change(ctx, secret, "webhook secret of the account "+a.Name); err != nil {
			return account.Account{}, err
		}
	}
	if len(secrets) > 0 {
		a.WebhookSecrets = secrets
	}
	return a, nil
}

// ofToken passes the secret of a token through seal or open.
func ofToken(ctx context.Context, t account.Token, change sealing) (account.Token, error) {
	secret, err := change(ctx, t.Secret, "secret of the token "+t.Hash)
	if err != nil {
		return account.Token{}, err
	}
	t.Secret = secret
	return t, nil
}

// openOne loads an account or a token and opens its secrets; of is ofAccount or ofToken.
func openOne[T any](ctx context.Context, s *Store, noun, query string, of func(context.Context, T, sealing) (T, error), value any) (T, error) {
	one, err := sqlstore.One(ctx, s.db, noun, query, sqlstore.Doc[T], value)
	if err != nil {
		return one, err
	}
	return of(ctx, one, s.open)
}

// openAll is openOne for a list.
func openAll[T any](ctx context.Context, s *Store, noun, query string, of func(context.Context, T, sealing) (T, error)) ([]T, error) {
	all, err := sqlstore.List(ctx, s.db, noun, query, sqlstore.Doc[T])
	if err != nil {
		return nil, err
	}
	return ofEach(ctx, all, of, s.open)
}

// ofEach passes the secrets of accounts or tokens through seal or open.
func ofEach[T any](ctx context.Context, all []T, of func(context.Context, T, sealing) (T, error), change sealing) ([]T, error) {
	out := slices.Clone(all)
	for i := range out {
		var err error
		if out[i], err = of(ctx, out[i], change); err != nil {
			return nil, err
		}
	}
	return out, nil
}
