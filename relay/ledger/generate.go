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

// NewToken is a request for a token. The objects are JSON, nil if none
// was given.
type NewToken struct {
	Metadata        json.RawMessage // kept if the ledger does
	PrivateMetadata json.RawMessage // kept sealed
	CSR             string          // PKCS #10 in PEM
	RedirectURL     string
	RedirectMeta    json.RawMessage
}

// generation is the input of a job that generates.
type generation struct {
	Token    string `json:"token"` // the text
	Ledger   string `json:"ledger"`
	CSR      string `json:"csr,omitempty"`
	Prepared Token  `json:"prepared"`
}

// Generate has a token made on a ledger, by its id or hash, and returns the job
// that does.
//
// It returns NotFound if the account has no such ledger, and Invalid if a field
// is wrong: metadata that is no object, a weak CSR or one without proof of
// possession, a redirect that is no http or https URL.
func (s *Service) Generate(ctx context.Context, acct relay.AccountID, ledgerID string, n NewToken) (string, error) {
	l, err := s.Ledger(ctx, acct, ledgerID)
	if err != nil {
		return "", err
	}
	if err := n.check(l); err != nil {
		return "", err
	}
	g, private, err := s.prepare(ctx, acct, l, n)
	if err != nil {
		return "", err
	}
	id := s.newJobID()
	if private != "" {
		sealed, err := s.deps.Vault.Seal(ctx, acct, []byte(private), "private token of "+id)
		if err != nil {
			return "", err
		}
		if err := s.deps.Store.SetPrivate(ctx, acct, id, sealed, s.opts.ShowPrivate); err != nil {
			return "", err
		}
	}
	return id, s.submit(ctx, acct, id, KindGenerate, g)
}

// prepare makes all of a token that needs no certificate.
func (s *Service) prepare(ctx context.Context, acct relay.AccountID, l Ledger, n NewToken) (g generation, private string, err error) {
	now := s.deps.Now().UTC().Truncate(time.Second)
	g = generation{Token: newText(), Ledger: l.ID, CSR: n.CSR}
	t := Token{
		ID: TokenID(g.Token), Ledger: l.ID, CreatedAt: now, Limit: l.Claims,
		RedirectURL: n.RedirectURL, RedirectMeta: n.RedirectMeta,
	}
	if l.Expiry > 0 {
		t.ExpiresAt = now.Add(l.Expiry)
	}
	if l.Metadata {
		t.Metadata = n.Metadata
	}
	if l.PrivateKeyRequired {
		private = newText()
		t.PrivateID = TokenID(private)
	}
	if n.PrivateMetadata != nil {
		plain, err := canonical(n.PrivateMetadata)
		if err != nil {
			return g, "", err
		}
		if t.Sealed, err = s.deps.Vault.Seal(ctx, acct, plain, "private metadata of "+t.ID); err != nil {
			return g, "", err
		}
	}
	g.Prepared = t
	return g, private, nil
}

// check returns all problems.
func (n *NewToken) check(l Ledger) error {
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
	if n.RedirectURL != "" && !redirectable(n.RedirectURL) {
		p.Add("redirect_url", "The redirect url must be an http or https URL of at most 2048 bytes.")
	}
	if n.RedirectURL == "" && n.RedirectMeta != nil {
		p["redirect_meta"] = []string{"The redirect meta needs a redirect url."}
	}
	return p.Err()
}

// redirectable reports whether a browser may be sent to a URL.
func redirectable(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && len(raw) <= maxURL && u.Hostname() != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// checkObject adds a problem unless a field is absent or a JSON object within the size.
func checkObject(p relay.Problems, field string, value json.RawMessage) {
	switch {
	case value == nil:
	case !isObject(value):
		p.AddNamed(field, "The %s must be an object.")
	case len(value) > maxMetadata:
		p.AddNamed(field, fmt.Sprintf("The %%s may not be greater than %d bytes.", maxMetadata))
	}
}

func isObject(b []byte) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(b, &o) == nil && o != nil
}

// runGenerate makes a token, once: a token that exists is what this job made.
func (s *Service) runGenerate(ctx context.Context, j job.Job) (any, error) {
	var g generation
	if err := s.input(ctx, j, &g); err != nil {
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
	if _, err := s.signEntries(ctx, j.Account, l); err != nil { // a log with entries has a head
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

func (s *Service) generate(ctx context.Context, j job.Job, l Ledger, csr string, t Token) error {
	if csr != "" {
		certificate, err := s.certify(ctx, j.Account, l, csr, t)
		if err != nil {
			return err
		}
		t.Certificate = certificate
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
	if err := s.deps.Store.SetHome(ctx, t.ID, j.Account); err != nil {
		return err
	}
	return s.mismatch(s.deps.Store.Generate(ctx, j.Account, Generation{t, entry, a}))
}

// Generation is a new token and the entry that says so.
type Generation struct {
	Token         Token
	Entry         []byte
	Authenticator Authenticator
}
