package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/ledger/pki"
)

// NewToken is a request for a token. Absent objects are nil.
type NewToken struct {
	Metadata        json.RawMessage // stored if the ledger stores metadata
	PrivateMetadata json.RawMessage // stored sealed
	CSR             string          // PKCS #10 in PEM
	RedirectURL     string
	RedirectMeta    json.RawMessage
}

type generation struct {
	Token    string `json:"token"` // the text
	Ledger   string `json:"ledger"`
	CSR      string `json:"csr,omitempty"`
	Prepared Token  `json:"prepared"`
}

// Generate creates a job that generates a token on a ledger, and returns the job's id. ledgerID is
// the id or the hash of the ledger.
//
// It returns relay.KindNotFound if the account does not have the ledger, and relay.KindInvalid
// for metadata that is not an object, a signing request that pki.ParseRequest refuses, or a
// redirect that is not an http or https URL.
func (s *Service) Generate(ctx context.Context, acct relay.AccountID, ledgerID string, n NewToken) (string, error) {
	l, err := s.Ledger(ctx, acct, ledgerID)
	if err != nil {
		return "", err
	}
	// 1. Check the request.
	p := relay.Problems{}
	checkObject(p, "metadata", n.Metadata)
	checkObject(p, "private_metadata", n.PrivateMetadata)
	checkObject(p, "redirect_meta", n.RedirectMeta)
	if n.CSR != "" {
		if _, err := pki.ParseRequest([]byte(n.CSR)); err != nil {
			p.Add("csr", err.Error())
		} else if !l.Certificates {
			p.Add("csr", "The ledger issues no certificates.")
		}
	}
	if n.RedirectURL != "" {
		u, err := url.Parse(n.RedirectURL)
		if err != nil || len(n.RedirectURL) > maxURL || u.Hostname() == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			p.Add("redirect_url", "The redirect url must be an http or https URL of at most 2048 bytes.")
		}
	} else if n.RedirectMeta != nil {
		p["redirect_meta"] = []string{"The redirect meta needs a redirect url."}
	}
	if err := p.Err(); err != nil {
		return "", err
	}

	// 2. Create the token without its certificate.
	now := s.deps.Now().UTC().Truncate(time.Second)
	g := generation{Token: newText(), Ledger: l.ID, CSR: n.CSR}
	t := Token{ID: TokenID(g.Token), Ledger: l.ID, CreatedAt: now, Limit: l.Claims, RedirectURL: n.RedirectURL, RedirectMeta: n.RedirectMeta}
	if l.Expiry > 0 {
		t.ExpiresAt = now.Add(l.Expiry)
	}
	if l.Metadata {
		t.Metadata = n.Metadata
	}
	if n.PrivateMetadata != nil {
		plain, err := canonical(n.PrivateMetadata)
		if err != nil {
			return "", err
		}
		if t.Sealed, err = s.deps.Vault.Seal(ctx, acct, plain, "private metadata of "+t.ID); err != nil {
			return "", err
		}
	}

	// 3. Save the private token and submit the job.
	id := s.newJobID()
	if l.PrivateKeyRequired {
		private := newText()
		t.PrivateID = TokenID(private)
		sealed, err := s.deps.Vault.Seal(ctx, acct, []byte(private), "private token of "+id)
		if err != nil {
			return "", err
		}
		if err := s.deps.Store.SetPrivate(ctx, acct, id, sealed, privateRetention); err != nil {
			return "", err
		}
	}
	g.Prepared = t
	return id, s.submit(ctx, acct, id, KindGenerate, g)
}

// checkObject adds a problem unless a field is absent or a JSON object of at most maxMetadata bytes.
func checkObject(p relay.Problems, field string, value json.RawMessage) {
	var object map[string]json.RawMessage
	switch {
	case value == nil:
	case json.Unmarshal(value, &object) != nil || object == nil:
		p.AddNamed(field, "The %s must be an object.")
	case len(value) > maxMetadata:
		p.AddNamed(field, fmt.Sprintf("The %%s may not be greater than %d bytes.", maxMetadata))
	}
}

// runGenerate generates the token of a job unless an earlier run has saved it.
func (s *Service) runGenerate(ctx context.Context, j job.Job) (any, error) {
	var g generation
	if err := s.openInput(ctx, j, &g); err != nil {
		return nil, err
	}
	l, err := s.Ledger(ctx, j.Account, g.Ledger)
	if relay.KindOf(err) == relay.KindNotFound {
		return nil, job.Fail("The ledger is gone.")
	}
	if err != nil {
		return nil, err
	}
	t := g.Prepared
	if _, err := s.signEntries(ctx, j.Account, l); err != nil { // a log with entries but without a head raises an alarm
		return nil, err
	}
	_, err = s.deps.Store.Token(ctx, j.Account, t.ID)
	if relay.KindOf(err) == relay.KindNotFound {
		err = s.generate(ctx, j, l, g.CSR, t)
	}
	if err != nil {
		return nil, err
	}
	_, err = s.signEntries(ctx, j.Account, l)
	return nil, err
}

// generate saves a token with its certificate and the entry of its generation.
func (s *Service) generate(ctx context.Context, j job.Job, l Ledger, csr string, t Token) error {
	if csr != "" {
		request, err := pki.ParseRequest([]byte(csr))
		if err != nil {
			return fmt.Errorf("token %s: csr: %w", t.ID, err)
		}
		a, err := s.authorityOf(ctx, j.Account, l)
		if err != nil {
			return err
		}
		issuer, err := pki.LoadAuthority(a.Certificate, a.Key)
		if err != nil {
			return fmt.Errorf("ledger %s: %w", l.ID, err)
		}
		if t.Certificate, err = issuer.Issue(request, pki.Subject{TokenID: t.ID, LedgerHash: l.Hash, From: t.CreatedAt, Until: t.ExpiresAt}); err != nil {
			return err
		}
	}
	data, err := facts(t)
	if err != nil {
		return err
	}
	data["job"] = j.ID
	entry, err := newLeaf(Generated, s.deps.Now(), data)
	if err != nil {
		return err
	}
	a, err := s.authenticator(ctx, Place{j.Account, l.ID})
	if err != nil {
		return err
	}
	if err := s.deps.Store.SetAccount(ctx, t.ID, j.Account); err != nil {
		return err
	}
	return s.alarmMismatch(s.deps.Store.Generate(ctx, j.Account, t, entry, a))
}

// authority is a ledger's certificate authority in the form that is sealed.
type authority struct {
	Certificate string `json:"certificate"` // PEM
	Key         []byte `json:"key"`         // PKCS #8
}

// authorityOf returns the authority of a ledger. The first call creates the authority.
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

// Authority returns the certificate of a ledger's authority in PEM, which verifies the
// certificates of its tokens. It returns relay.KindNotFound if the account does not have the
// ledger, or the ledger does not issue certificates.
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
