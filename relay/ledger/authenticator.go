package ledger

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/penstock/penstock/relay"
)

// Authenticator makes and checks the MACs of a ledger's entries: an HMAC-SHA256 of each
// stored entry and of the MAC of its token's entry before it. The key derives from the
// ledger's signing key, which a key of the account seals, so only a gateway can make one.
type Authenticator struct {
	place Place
	key   []byte
}

// NewAuthenticator returns the authenticator of a ledger by its signing key.
func NewAuthenticator(p Place, signer []byte) (Authenticator, error) {
	key, err := hkdf.Key(sha256.New, signer, nil, "penstock ledger entries", sha256.Size)
	return Authenticator{p, key}, err
}

// authenticator returns the authenticator of a ledger, which must have a signing key.
func (s *Service) authenticator(ctx context.Context, p Place) (Authenticator, error) {
	signer, err := s.secret(ctx, p.Account, signerOf(p.Ledger), nil)
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		return Authenticator{}, s.alarm(p, "the key that signs its heads is missing")
	case corrupt(err):
		return Authenticator{}, s.alarm(p, "the key that signs its heads does not open: %s", err)
	case err != nil:
		return Authenticator{}, err
	}
	return NewAuthenticator(p, signer)
}

// mac returns the MAC that a row must have.
func (a Authenticator) mac(r Row) []byte {
	h := hmac.New(sha256.New, a.key)
	// Hash.Write never fails, and these types always have a JSON form.
	_ = json.NewEncoder(h).Encode([]any{
		a.place.Account, a.place.Ledger, r.Sequence, r.Token, r.Job, r.Metadata, r.Position, r.Claims, r.Previous, r.Bytes,
	})
	return h.Sum(nil)
}

// authentic reports whether a row is as a gateway wrote it, and follows the entry of its
// token that it followed then.
func (a Authenticator) authentic(r Row) bool { return hmac.Equal(r.MAC, a.mac(r)) }

const notAuthentic = "was not written by a gateway: it, or the entry of its token before it, was added, changed or removed in the database"

// Mismatch is the error for a token whose stored entries are not those that gateways
// wrote.
type Mismatch struct {
	Place   Place
	Token   string
	Problem string
}

// Error names the token and the problem.
func (m *Mismatch) Error() string { return aboutToken(m.Token) + ": " + m.Problem }

// wrongChain describes how the last entry of a token differs from what a gateway wrote,
// and its number from the entries and claims that are stored.
func (a Authenticator) wrongChain(c Chain) string {
	switch row := c.Last; {
	case c.Entries == 0:
		return "it has no entry"
	case !a.authentic(row):
		return fmt.Sprintf("its entry %d %s", row.Sequence, notAuthentic)
	case c.Entries != row.Position+1:
		return fmt.Sprintf("it has %d entries, and %d up to its entry %d: some were added or removed", c.Entries, row.Position+1, row.Sequence)
	case c.Claimed != row.Claims:
		return fmt.Sprintf("it counts %d claims, the ledger has %d", c.Claimed, row.Claims)
	}
	return ""
}
