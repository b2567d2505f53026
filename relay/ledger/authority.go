package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/ledger/pki"
)

// authority is a ledger's certificate authority in the form that is sealed.
type authority struct {
	Certificate string `json:"certificate"` // PEM
	Key         []byte `json:"key"`         // PKCS #8
}

// authorityOf returns the authority of a ledger, made at its first use.
func (s *Service) authorityOf(ctx context.Context, acct relay.AccountID, l Ledger) (a authority, err error) {
	b, err := s.secret(ctx, acct, "authority "+l.ID, func() ([]byte, error) {
		certificate, key, err := pki.NewAuthority(l.Name, l.Hash, s.deps.Now())
		if err != nil {
			return nil, err
		}
		return json.Marshal(authority{certificate, key})
	})
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("ledger %s: authority: %w", l.ID, err)
	}
	return a, nil
}

// Authority returns the certificate of a ledger's authority in PEM, by which the
// certificates of its tokens are verified.
//
// It returns NotFound if the account has no such ledger or that issues no
// certificates.
func (s *Service) Authority(ctx context.Context, acct relay.AccountID, ledgerID string) (string, error) {
	l, err := s.Ledger(ctx, acct, ledgerID)
	if err != nil {
		return "", err
	}
	if !l.Certificates {
		return "", relay.Errorf(relay.KindNotFound, "ledger %s: issues no certificates", l.ID)
	}
	a, err := s.authorityOf(ctx, acct, l)
	return a.Certificate, err
}

// certify issues the certificate of a token.
func (s *Service) certify(ctx context.Context, acct relay.AccountID, l Ledger, csr string, t Token) (certificate string, err error) {
	request, err := pki.ParseRequest([]byte(csr))
	if err != nil {
		return "", fmt.Errorf("token %s: csr: %w", t.ID, err)
	}
	a, err := s.authorityOf(ctx, acct, l)
	if err != nil {
		return "", err
	}
	issuer, err := pki.LoadAuthority(a.Certificate, a.Key)
	if err != nil {
		return "", fmt.Errorf("ledger %s: %w", l.ID, err)
	}
	return issuer.Issue(request, pki.Subject{TokenID: t.ID, LedgerHash: l.Hash, From: t.CreatedAt, Until: t.ExpiresAt})
}
