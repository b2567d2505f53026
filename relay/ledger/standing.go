package ledger

import (
	"bytes"
	"context"
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

// facts returns the data of the entry of a token's generation, without the job. The
// state of the token follows from them and from its claims.
func facts(t Token) (map[string]any, error) {
	all := map[string]any{"token": t.ID, "created_at": t.CreatedAt.UTC().Format(TimeFormat), "claims": t.Limit, "redirect_url": nil}
	if !t.ExpiresAt.IsZero() {
		all["expires_at"] = t.ExpiresAt.UTC().Format(TimeFormat)
	}
	if t.Metadata != nil {
		all["metadata"] = t.Metadata
	}
	if t.Sealed != nil {
		sum := sha256.Sum256(t.Sealed)
		all["private_metadata_sha256"] = hex.EncodeToString(sum[:])
	}
	if t.PrivateID != "" {
		all["private_token_sha256"] = t.PrivateID
	}
	if t.RedirectURL != "" {
		all["redirect_url"] = t.RedirectURL
	}
	if t.RedirectMeta != nil {
		all["redirect_meta"] = t.RedirectMeta
	}
	if t.Certificate != "" {
		fingerprint, err := pki.Fingerprint(t.Certificate)
		if err != nil {
			return nil, err
		}
		all["certificate_sha256"] = fingerprint
	}
	return all, nil
}

// differs names the facts that a token has otherwise than the data of the entry of
// its generation; empty: none.
func differs(t Token, data json.RawMessage) string {
	is, err := facts(t)
	if err != nil {
		return "certificate"
	}
	var said map[string]json.RawMessage
	if json.Unmarshal(data, &said) != nil {
		return "everything"
	}
	delete(said, "job")
	names := maps.Clone(is)
	for name := range said {
		names[name] = nil
	}
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		value, has := is[name]
		told, ok := said[name]
		if has != ok || !same(value, told) {
			wrong = append(wrong, name)
		}
	}
	return strings.Join(wrong, ", ")
}

// same reports whether a value is the one of some JSON.
func same(value any, text json.RawMessage) bool {
	a, err := canonical(value)
	if err != nil {
		return false
	}
	b, err := canonical(text)
	return err == nil && bytes.Equal(a, b)
}

// event is the common data of entries, and the number of a claim.
type event struct {
	Token    string          `json:"token"`
	Job      string          `json:"job"`
	Claim    int64           `json:"claim"`
	Metadata json.RawMessage `json:"metadata"`
}

// readEvent decodes an entry and its data.
func readEvent(sequence int64, b []byte) (Entry, event, error) {
	var of event
	e, err := readEntry(sequence, b)
	if err == nil {
		err = json.Unmarshal(e.Data, &of)
	}
	return e, of, err
}

// token loads a token by its id, whose state is that of its entries; relay.KindNotFound
// if the account has none.
func (s *Service) token(ctx context.Context, acct relay.AccountID, id string) (Token, error) {
	st, err := s.deps.Store.Standing(ctx, acct, id)
	if err != nil {
		return Token{}, err
	}
	return st.Token, s.checkStanding(ctx, acct, st)
}

// checkStanding compares the state of a token with its entries: those of its generation
// and its last event, which gateways wrote and which are proven to be part of the signed
// ledger. A token that differs was changed outside the ledger, and is not used.
func (s *Service) checkStanding(ctx context.Context, acct relay.AccountID, st Standing) error {
	p, about := Place{acct, st.Token.Ledger}, aboutToken(st.ID)
	a, err := s.authenticator(ctx, p)
	if err != nil {
		return err
	}
	if wrong := a.wrongStanding(st); wrong != "" {
		return s.alarmAbout(p, about, "%s: %s", about, wrong)
	}
	for _, e := range []Row{st.Generation, st.Chain.Last} {
		if err := s.mustBeProven(ctx, p, about, e); err != nil {
			return err
		}
	}
	s.alarms.clear(about)
	return nil
}

// mustBeProven raises an alarm if an entry is not the one that was signed.
func (s *Service) mustBeProven(ctx context.Context, p Place, about string, e Row) error {
	ok, err := s.proven(ctx, p, e)
	if err != nil || ok {
		return err
	}
	return s.alarmAbout(p, about, "%s: its entry %d is not the one that was signed", about, e.Sequence)
}

// appended returns the metadata that was appended to a token, as its signed entries
// say.
func (s *Service) appended(ctx context.Context, acct relay.AccountID, t Token) (all []json.RawMessage, err error) {
	rows, err := s.deps.Store.Annotations(ctx, acct, t.ID)
	if err != nil {
		return nil, err
	}
	p, about := Place{acct, t.Ledger}, aboutToken(t.ID)
	for _, row := range rows {
		if err := s.mustBeProven(ctx, p, about, row); err != nil {
			return nil, err
		}
		e, of, err := readEvent(row.Sequence, row.Bytes)
		if err != nil {
			return nil, err
		}
		if e.Type != Annotated || of.Token != t.ID {
			return nil, s.alarmAbout(p, about, "%s: its entry %d appends no metadata to it", about, row.Sequence)
		}
		all = append(all, of.Metadata)
	}
	return all, nil
}

// wrongStanding describes how a token differs from its entries.
func (a Authenticator) wrongStanding(st Standing) string {
	if st.Token.ID != st.ID {
		return "it has the document of another token"
	}
	if wrong := a.wrongChain(st.Chain); wrong != "" {
		return wrong
	}
	e, of, err := readEvent(st.Generation.Sequence, st.Generation.Bytes)
	if err != nil || e.Type != Generated || of.Token != st.ID || !a.authentic(st.Generation) {
		return "it has no entry of its generation that a gateway wrote"
	}
	if names := differs(st.Token, e.Data); names != "" {
		return fmt.Sprintf("it was changed, entry %d says otherwise: %s", e.Sequence, names)
	}
	return ""
}

// proven reports whether an entry is part of the ledger as it was signed. One that
// came since the last head has it signed first.
func (s *Service) proven(ctx context.Context, p Place, e Row) (bool, error) {
	head := s.trusted.get(p).head
	if e.Sequence >= head.Size {
		if err := s.signByID(ctx, p.Account, p.Ledger); err != nil {
			return false, err
		}
		head = s.trusted.get(p).head
	}
	if e.Sequence >= head.Size {
		return false, nil
	}
	proof, err := merkle.Prove(head.Size, e.Sequence, s.reader(ctx, p.Account, p.Ledger))
	if err != nil {
		return false, err
	}
	return merkle.CheckProof(proof, head, e.Sequence, e.Bytes) == nil, nil
}
