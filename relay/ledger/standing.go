package ledger

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/ledger/merkle"
	"github.com/penstock/penstock/relay/ledger/pki"
)

// facts returns the data of a token's generation entry without the job.
func facts(t Token) (map[string]any, error) {
	data := map[string]any{"token": t.ID, "created_at": t.CreatedAt.UTC().Format(TimeFormat), "claims": t.Limit, "redirect_url": nil}
	if !t.ExpiresAt.IsZero() {
		data["expires_at"] = t.ExpiresAt.UTC().Format(TimeFormat)
	}
	if t.Metadata != nil {
		data["metadata"] = t.Metadata
	}
	if t.Sealed != nil {
		sum := sha256.Sum256(t.Sealed)
		data["private_metadata_sha256"] = hex.EncodeToString(sum[:])
	}
	if t.PrivateID != "" {
		data["private_token_sha256"] = t.PrivateID
	}
	if t.RedirectURL != "" {
		data["redirect_url"] = t.RedirectURL
	}
	if t.RedirectMeta != nil {
		data["redirect_meta"] = t.RedirectMeta
	}
	if t.Certificate != "" {
		fingerprint, err := pki.Fingerprint(t.Certificate)
		if err != nil {
			return nil, err
		}
		data["certificate_sha256"] = fingerprint
	}
	return data, nil
}

// differingFacts lists the names of the facts that differ between a token and the data of its
// generation entry; empty if none differ.
func differingFacts(t Token, data json.RawMessage) string {
	tokenFacts, err := facts(t)
	if err != nil {
		return "certificate"
	}
	var entry map[string]json.RawMessage
	if json.Unmarshal(data, &entry) != nil {
		return "everything"
	}
	delete(entry, "job")
	names := maps.Clone(tokenFacts)
	for name := range entry {
		names[name] = nil
	}
	var differing []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		value, inToken := tokenFacts[name]
		entryValue, inEntry := entry[name]
		a, errA := canonical(value)
		b, errB := canonical(entryValue)
		if inToken != inEntry || errA != nil || errB != nil || !bytes.Equal(a, b) {
			differing = append(differing, name)
		}
	}
	return strings.Join(differing, ", ")
}

// event is the part of an entry's data that the gateway reads. Claim is the number of a claim.
// Metadata belongs to a generation or an annotation.
type event struct {
	Token    string          `json:"token"`
	Job      string          `json:"job"`
	Claim    int64           `json:"claim"`
	Metadata json.RawMessage `json:"metadata"`
}

func readEvent(sequence int64, b []byte) (Entry, event, error) {
	var data event
	e, err := readEntry(sequence, b)
	if err == nil {
		err = json.Unmarshal(e.Data, &data)
	}
	return e, data, err
}

// token loads a token by its id and checks it against its entries; relay.KindNotFound if the
// account does not have the token.
func (s *Service) token(ctx context.Context, acct relay.AccountID, id string) (Token, error) {
	st, err := s.deps.Store.Standing(ctx, acct, id)
	if err != nil {
		return Token{}, err
	}
	return st.Token, s.checkStanding(ctx, acct, st)
}

// checkStanding raises an alarm unless a token matches its first and its last entry, a gateway
// wrote both, and both are part of the signed ledger.
func (s *Service) checkStanding(ctx context.Context, acct relay.AccountID, st Standing) error {
	p, label := Place{acct, st.Token.Ledger}, aboutToken(st.ID)
	a, err := s.authenticator(ctx, p)
	if err != nil {
		return err
	}
	if fault := a.standingFault(st); fault != "" {
		return s.alarmAbout(p, label, "%s: %s", label, fault)
	}
	for _, e := range []Row{st.Generation, st.Chain.Last} {
		if err := s.mustBeProven(ctx, p, label, e); err != nil {
			return err
		}
	}
	s.alarms.clear(label)
	return nil
}

// mustBeProven raises an alarm unless an entry is part of the signed ledger. It first signs an
// entry that was added after the last head.
func (s *Service) mustBeProven(ctx context.Context, p Place, label string, e Row) error {
	head := s.trusted.get(p).head
	if e.Sequence >= head.Size {
		if err := s.signPending(ctx, p.Account, p.Ledger); err != nil {
			return err
		}
		head = s.trusted.get(p).head
	}
	if e.Sequence < head.Size {
		proof, err := merkle.Prove(head.Size, e.Sequence, s.reader(ctx, p.Account, p.Ledger))
		if err != nil || merkle.CheckProof(proof, head, e.Sequence, e.Bytes) == nil {
			return err
		}
	}
	return s.alarmAbout(p, label, "%s: its entry %d differs from the signed entry", label, e.Sequence)
}

// appendedMetadata returns the metadata that was appended to a token, oldest first.
func (s *Service) appendedMetadata(ctx context.Context, acct relay.AccountID, t Token) (metadata []json.RawMessage, err error) {
	rows, err := s.deps.Store.Annotations(ctx, acct, t.ID)
	if err != nil {
		return nil, err
	}
	p, label := Place{acct, t.Ledger}, aboutToken(t.ID)
	for _, row := range rows {
		if err := s.mustBeProven(ctx, p, label, row); err != nil {
			return nil, err
		}
		e, data, err := readEvent(row.Sequence, row.Bytes)
		if err != nil {
			return nil, err
		}
		if e.Type != Annotated || data.Token != t.ID {
			return nil, s.alarmAbout(p, label, "%s: its entry %d does not append metadata to it", label, row.Sequence)
		}
		metadata = append(metadata, data.Metadata)
	}
	return metadata, nil
}

// standingFault describes the fault of a token or its entries; empty if there is none.
func (a Authenticator) standingFault(st Standing) string {
	if st.Token.ID != st.ID {
		return "its document belongs to another token"
	}
	if fault := a.chainFault(st.Chain); fault != "" {
		return fault
	}
	e, data, err := readEvent(st.Generation.Sequence, st.Generation.Bytes)
	if err != nil || e.Type != Generated || data.Token != st.ID || !a.authentic(st.Generation) {
		return "the entry of its generation is missing or was not written by a gateway"
	}
	if names := differingFacts(st.Token, e.Data); names != "" {
		return fmt.Sprintf("it was changed and differs from entry %d: %s", e.Sequence, names)
	}
	return ""
}

// Standing is a token with the entries that determine its state.
type Standing struct {
	ID         string // the key of the row
	Token      Token
	Chain      Chain
	Generation Row             // the entry of the token's generation
	Account    relay.AccountID // the result of AccountOf; 0 means none
}

// Authenticator computes and checks the MACs of a ledger's entries: an HMAC-SHA256 over the
// stored entry and the MAC of the token's previous entry. The key derives from the ledger's
// signing key. That key is sealed, so only a gateway can compute a MAC.
type Authenticator struct {
	place Place
	key   []byte
}

// NewAuthenticator returns the authenticator of a ledger with a signing key.
func NewAuthenticator(p Place, signer []byte) (Authenticator, error) {
	key, err := hkdf.Key(sha256.New, signer, nil, "penstock ledger entries", sha256.Size)
	return Authenticator{p, key}, err
}

// authenticator returns the authenticator of a ledger, which must have a signing key.
func (s *Service) authenticator(ctx context.Context, p Place) (Authenticator, error) {
	signer, err := s.secret(ctx, p.Account, signerName(p.Ledger), nil)
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		return Authenticator{}, s.alarm(p, "the key that signs its heads is missing")
	case corrupt(err):
		return Authenticator{}, s.alarm(p, "the key that signs its heads cannot be decrypted: %s", err)
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

// authentic reports whether a gateway wrote a row and the MAC of the token's previous entry.
func (a Authenticator) authentic(r Row) bool { return hmac.Equal(r.MAC, a.mac(r)) }

const notAuthentic = "was not written by a gateway: it, or the previous entry of its token, was added, changed or removed in the database"

// Mismatch is the error for a token whose stored entries differ from the entries that gateways
// wrote.
type Mismatch struct {
	Place   Place
	Token   string
	Problem string
}

// Error names the token and the problem.
func (m *Mismatch) Error() string { return aboutToken(m.Token) + ": " + m.Problem }

// chainFault describes the fault of a chain; empty if a gateway wrote the last entry, and its
// position and claims match the stored numbers.
func (a Authenticator) chainFault(c Chain) string {
	switch row := c.Last; {
	case c.Entries == 0:
		return "it has no entry"
	case !a.authentic(row):
		return fmt.Sprintf("its entry %d %s", row.Sequence, notAuthentic)
	case c.Entries != row.Position+1:
		return fmt.Sprintf("it has %d entries, but entry %[3]d was written as number %[2]d: entries were added or removed", c.Entries, row.Position+1, row.Sequence)
	case c.Claimed != row.Claims:
		return fmt.Sprintf("it counts %d claims, but its entries in the ledger count %d", c.Claimed, row.Claims)
	}
	return ""
}
