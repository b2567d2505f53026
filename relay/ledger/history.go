package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/ledger/merkle"
)

// History is what happened to a token, and what proves it.
type History struct {
	Entries []Entry
	Head    merkle.Head
	Signed  string // the head, as a signed checkpoint
	Key     string // the public key that verifies it
	// Proofs are the inclusion proofs of the entries, in their order.
	Proofs [][]merkle.Hash
}

// History returns all entries of a token, oldest first, each with the proof that
// it is part of the ledger as its head says.
//
// It returns Invalid if the token is unknown or not the account's, or its private
// token is wrong.
func (s *Service) History(ctx context.Context, acct account.ID, c Credential) (History, error) {
	t, err := s.known(ctx, acct, c)
	if err != nil {
		return History{}, err
	}
	l, err := s.Ledger(ctx, acct, t.Ledger)
	if err != nil {
		return History{}, err
	}
	h, err := s.headOf(ctx, acct, l)
	if err != nil {
		return h, err
	}
	sequences, err := s.deps.Store.EntriesOf(ctx, acct, t.ID)
	if err != nil {
		return h, err
	}
	for len(sequences) > 0 && sequences[len(sequences)-1] >= h.Head.Size { // came since
		sequences = sequences[:len(sequences)-1]
	}
	return h, s.prove(ctx, acct, l, sequences, &h)
}

// headOf seals a ledger and returns its head, opened.
func (s *Service) headOf(ctx context.Context, acct account.ID, l Ledger) (h History, err error) {
	log, err := s.seal(ctx, acct, l)
	if err != nil {
		return h, err
	}
	if h.Key, err = s.Key(ctx, acct, l.ID); err != nil {
		return h, err
	}
	h.Signed = log.Head
	if h.Head, err = merkle.Open(log.Head, h.Key); err != nil {
		return h, fmt.Errorf("ledger %s: %w", l.ID, err)
	}
	return h, nil
}

// prove adds entries and their proofs.
func (s *Service) prove(ctx context.Context, acct account.ID, l Ledger, sequences []int64, h *History) error {
	raw, err := s.deps.Store.Entries(ctx, acct, l.ID, sequences)
	if err != nil {
		return err
	}
	for i, n := range sequences {
		e, err := readEntry(n, raw[i])
		if err != nil {
			return fmt.Errorf("ledger %s: %w", l.ID, err)
		}
		proof, err := merkle.Prove(h.Head.Size, n, s.reader(ctx, acct, l.ID))
		if err != nil {
			return fmt.Errorf("ledger %s: entry %d: %w", l.ID, n, err)
		}
		h.Entries, h.Proofs = append(h.Entries, e), append(h.Proofs, proof)
	}
	return nil
}

// readEntry reads the bytes of an entry.
func readEntry(n int64, b []byte) (Entry, error) {
	var f leaf
	if b == nil {
		return Entry{}, relay.Errorf(relay.KindUnexpected, "entry %d is missing", n)
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return Entry{}, fmt.Errorf("entry %d: %w", n, err)
	}
	return Entry{Sequence: n, Type: f.Type, At: f.At, Data: f.Data, Hash: merkle.LeafHash(b).String()}, nil
}
