package inventory

import (
	"context"
	"crypto/rand"
	"slices"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// Tokens lists the tokens of an account, or of all accounts if acct is 0.
func (s *Service) Tokens(ctx context.Context, acct relay.AccountID) ([]account.DeclaredToken, error) {
	tokens, err := s.Accounts.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := s.loadSet(ctx)
	if err != nil {
		return nil, err
	}
	documentByHash := make(map[string]string)
	for _, part := range stored.set.Parts() {
		for _, a := range part.Accounts {
			for _, t := range a.Tokens {
				documentByHash[t.Hash()] = part.Owner()
			}
		}
	}
	declaredTokens := make([]account.DeclaredToken, 0, len(tokens))
	for _, t := range tokens {
		if acct == 0 || t.Account == acct {
			declaredTokens = append(declaredTokens, account.DeclaredToken{Token: t, Document: documentByHash[t.Hash]})
		}
	}
	return declaredTokens, nil
}

// AddToken creates a token for an account and returns its text, which is not stored. It returns an
// Invalid error with the invalid fields, or a Conflict error if another token has the source.
func (s *Service) AddToken(ctx context.Context, acct relay.AccountID, scopes []string, source, secret string) (text string, token account.Token, err error) {
	text = rand.Text()
	declared := document.Token{Token: text, Scopes: scopes, Source: source, Secret: secret}
	problems := relay.Problems{}
	for _, m := range declared.Check() {
		problems.Add(m.Path, m.Text)
	}
	if err := problems.Err(); err != nil {
		return "", account.Token{}, err
	}
	token = tokensOf(acct, document.Account{Tokens: []document.Token{declared}})[0]
	token.CreatedAt = s.Now().UTC()
	return text, token, s.Accounts.AddToken(ctx, token)
}

// RevokeToken revokes the token with an id, see Revoke. RevokeToken returns the revoked token, or
// a NotFound error if there is no such token.
func (s *Service) RevokeToken(ctx context.Context, id string) (account.DeclaredToken, error) {
	declaredTokens, err := s.Tokens(ctx, 0)
	if err != nil {
		return account.DeclaredToken{}, err
	}
	i := slices.IndexFunc(declaredTokens, func(t account.DeclaredToken) bool { return t.ID() == id })
	if i < 0 {
		return account.DeclaredToken{}, relay.Errorf(relay.KindNotFound, "There is no token %s.", id)
	}
	return declaredTokens[i], s.revoke(ctx, declaredTokens[i].Token)
}

// GeneratedLogin is a SOAP login with a token of its account as the password, like the demo login.
type GeneratedLogin struct {
	Document  string // name of the document that declares it
	Account   string
	Username  string
	TokenHash string
}

// GeneratedLogin returns the generated login that an inventory declares; found is false if there is
// none.
func (s *Service) GeneratedLogin(ctx context.Context) (login GeneratedLogin, found bool, err error) {
	stored, err := s.loadSet(ctx)
	if err != nil {
		return login, false, err
	}
	for _, part := range stored.set.Parts() {
		for _, a := range part.Accounts {
			if a.SOAP == nil || !account.IsGenerated(a.SOAP.Password) {
				continue
			}
			for _, t := range a.Tokens {
				if same, err := account.VerifyPassword(a.SOAP.Password, t.Hash()); err != nil || same {
					return GeneratedLogin{part.Owner(), a.Name, a.SOAP.Username, t.Hash()}, same, err
				}
			}
		}
	}
	return login, false, nil
}

// Revoke deletes the token with a hash from the store and from the stored inventories, so that no
// later apply creates the token again. Revoke also deletes a SOAP login with the token as its
// password.
func (s *Service) Revoke(ctx context.Context, hash string) error {
	return s.revoke(ctx, account.Token{Hash: hash})
}

func (s *Service) revoke(ctx context.Context, t account.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.Accounts.DeleteToken(ctx, t); err != nil {
		return err
	}
	return s.redeclare(ctx, func(a *document.Account) error {
		oldCount := len(a.Tokens)
		a.Tokens = slices.DeleteFunc(a.Tokens, func(d document.Token) bool { return d.Hash() == t.Hash })
		if len(a.Tokens) == oldCount || a.SOAP == nil {
			return nil
		}
		same, err := account.VerifyPassword(a.SOAP.Password, t.Hash)
		if err == nil && same {
			err = ignoreMissing(s.Accounts.DeleteLogin(ctx, a.SOAP.Username))
			a.SOAP = nil
		}
		return err
	})
}

// redeclare calls change with the accounts of all stored documents and saves the documents.
func (s *Service) redeclare(ctx context.Context, change func(*document.Account) error) error {
	stored, err := s.loadSet(ctx)
	if err != nil || stored.data == nil {
		return err
	}
	set := stored.set
	for _, part := range set.Parts() {
		for i := range part.Accounts {
			if err := change(&part.Accounts[i]); err != nil {
				return err
			}
		}
		set = set.With(part)
	}
	return s.saveSet(ctx, stored, set)
}
