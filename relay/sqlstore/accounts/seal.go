package accounts

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/penstock/penstock/relay/account"
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

// ofAccount passes the secrets of an account through seal or open.
func ofAccount(ctx context.Context, a account.Account, change func(context.Context, string, string) (string, error)) (account.Account, error) {
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

// opened opens the secrets of a stored account.
func (s *Store) opened(ctx context.Context, a account.Account, err error) (account.Account, error) {
	if err != nil {
		return account.Account{}, err
	}
	return ofAccount(ctx, a, s.open)
}

// openedToken opens the secret of a stored token.
func (s *Store) openedToken(ctx context.Context, t account.Token, err error) (account.Token, error) {
	if err == nil {
		t.Secret, err = s.open(ctx, t.Secret, "secret of the token "+t.Hash)
	}
	if err != nil {
		return account.Token{}, err
	}
	return t, nil
}
