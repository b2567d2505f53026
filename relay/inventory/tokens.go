package inventory

import (
	"context"
	"crypto/rand"
	"slices"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// Tokens lists the tokens of an account, of all accounts if it is 0.
func (s *Service) Tokens(ctx context.Context, acct relay.AccountID) ([]account.DeclaredToken, error) {
	tokens, err := s.Accounts.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	st, err := s.standing(ctx)
	if err != nil {
		return nil, err
	}
	declared := make(map[string]string)
	for _, part := range st.set.Parts() {
		for _, a := range part.Accounts {
			for _, t := range a.Tokens {
				declared[t.Hash()] = part.Owner()
			}
		}
	}
	declaredTokens := make([]account.DeclaredToken, 0, len(tokens))
	for _, t := range tokens {
		if acct == 0 || t.Account == acct {
			declaredTokens = append(declaredTokens, account.DeclaredToken{Token: t, Document: declared[t.Hash]})
		}
	}
	return declaredTokens, nil
}

// AddToken makes a token for an account and returns its text, which is not kept. It
// returns relay.KindInvalid, by field, and relay.KindConflict if another token has the
// source.
func (s *Service) AddToken(ctx context.Context, acct relay.AccountID, scopes []string, source, secret string) (text string, made account.Token, err error) {
	text = rand.Text()
	declared := document.Token{Token: text, Scopes: scopes, Source: source, Secret: secret}
	problems := relay.Problems{}
	for _, m := range declared.Check() {
		problems.Add(m.Path, m.Text)
	}
	if err := problems.Err(); err != nil {
		return "", account.Token{}, err
	}
	made = tokensOf(acct, document.Account{Tokens: []document.Token{declared}})[0]
	made.CreatedAt = s.Now().UTC()
	return text, made, s.Accounts.AddToken(ctx, made)
}

// RevokeToken revokes the token with an id, see Revoke. It returns the token as it was;
// relay.KindNotFound if there is none.
func (s *Service) RevokeToken(ctx context.Context, id string) (account.DeclaredToken, error) {
	declaredTokens, err := s.Tokens(ctx, 0)
	if err != nil {
		return account.DeclaredToken{}, err
	}
	offset := slices.IndexFunc(declaredTokens, func(t account.DeclaredToken) bool { return t.ID() == id })
	if offset < 0 {
		return account.DeclaredToken{}, relay.Errorf(relay.KindNotFound, "There is no token %s.", id)
	}
	return declaredTokens[offset], s.revoke(ctx, declaredTokens[offset].Token)
}

// GeneratedLogin is a SOAP login whose password is a token of its account: that of the demo.
type GeneratedLogin struct {
	Document  string // that declares it
	Account   string
	Username  string
	TokenHash string
}

// GeneratedLogin returns the generated login that an inventory declares; found is false if
// none does.
func (s *Service) GeneratedLogin(ctx context.Context) (login GeneratedLogin, found bool, err error) {
	st, err := s.standing(ctx)
	if err != nil {
		return login, false, err
	}
	for _, part := range st.set.Parts() {
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

// Revoke deletes a token by its hash and takes it out of what earlier inventories
// declared, so that no later one brings it back; so it does with the SOAP login of an
// account that declares the token and has it as its password.
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
		declared := len(a.Tokens)
		a.Tokens = slices.DeleteFunc(a.Tokens, func(d document.Token) bool { return d.Hash() == t.Hash })
		if len(a.Tokens) == declared || a.SOAP == nil {
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

// redeclare changes each account of every document as it is kept.
func (s *Service) redeclare(ctx context.Context, change func(*document.Account) error) error {
	st, err := s.standing(ctx)
	if err != nil || st.data == nil {
		return err
	}
	set := st.set
	for _, part := range set.Parts() {
		for i := range part.Accounts {
			if err := change(&part.Accounts[i]); err != nil {
				return err
			}
		}
		set = set.With(part)
	}
	return s.keep(ctx, st, set)
}
