package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/ledger/merkle"
)

// History has the entries of a token with their proofs, as the API returns them, and the
// opened head.
type History struct {
	Document
	Head merkle.Head `json:"-"`
}

// History returns all entries of a token, oldest first, with the proofs that they are part of the
// signed ledger and that there are no others.
//
// It returns relay.KindInvalid if the account does not have the token, or the private token is
// wrong.
func (s *Service) History(ctx context.Context, acct relay.AccountID, c Credential) (History, error) {
	t, err := s.checkCredential(ctx, acct, c)
	if err != nil {
		return History{}, err
	}
	return s.historyOf(ctx, acct, t)
}

// Inspect returns a token and its history by the token's id. Operators use it because they have
// neither the text nor the private token. Inspect returns relay.KindNotFound if the account does
// not have the token.
func (s *Service) Inspect(ctx context.Context, acct relay.AccountID, tokenID string) (Token, History, error) {
	t, err := s.token(ctx, acct, tokenID)
	if err != nil {
		return Token{}, History{}, err
	}
	h, err := s.historyOf(ctx, acct, t)
	return t, h, err
}

func (s *Service) historyOf(ctx context.Context, acct relay.AccountID, t Token) (History, error) {
	l, err := s.Ledger(ctx, acct, t.Ledger)
	if err != nil {
		return History{}, err
	}
	head, signed, key, err := s.headOf(ctx, acct, l)
	if err != nil {
		return History{}, err
	}
	h := History{Head: head, Document: Document{Data: []Entry{}, Meta: DocumentMeta{
		TreeSize: head.Size, RootHash: head.Root.String(), Signature: signed, Key: key, Proof: [][]merkle.Hash{},
	}}}
	sequences, err := s.deps.Store.EntriesOf(ctx, acct, t.ID)
	if err != nil {
		return h, err
	}
	// Omit entries that were added after the head was signed.
	sequences = slices.DeleteFunc(sequences, func(n int64) bool { return n >= head.Size })
	err = s.prove(ctx, acct, l, t.ID, sequences, &h)
	return h, err
}

// headOf signs a ledger's entries and returns its head, opened and as a signed checkpoint, and
// the public key that verifies the checkpoint.
func (s *Service) headOf(ctx context.Context, acct relay.AccountID, l Ledger) (head merkle.Head, signed, key string, err error) {
	log, err := s.signEntries(ctx, acct, l)
	if err != nil {
		return head, "", "", err
	}
	if key, err = s.Key(ctx, acct, l.ID); err != nil {
		return head, "", "", err
	}
	if head, err = merkle.Open(log.Head, key); err != nil {
		return head, "", "", fmt.Errorf("ledger %s: %w", l.ID, err)
	}
	return head, log.Head, key, nil
}

// prove adds the entries of a token with their proofs to h, and a signed statement that no entry is
// missing. It checks that the first entry is the generation and that no claim is missing.
func (s *Service) prove(ctx context.Context, acct relay.AccountID, l Ledger, tokenID string, sequences []int64, h *History) error {
	raw, err := s.deps.Store.Entries(ctx, acct, l.ID, sequences)
	if err != nil {
		return err
	}
	p, claims := Place{acct, l.ID}, int64(0)
	var fold merkle.Fold
	for i, n := range sequences {
		e, data, err := readEvent(n, raw[i])
		if err != nil {
			return fmt.Errorf("ledger %s: %w", l.ID, err)
		}
		proof, err := merkle.Prove(h.Head.Size, n, s.reader(ctx, acct, l.ID))
		if err != nil {
			return fmt.Errorf("ledger %s: entry %d: %w", l.ID, n, err)
		}
		if merkle.CheckProof(proof, h.Head, n, raw[i]) != nil {
			return s.alarmAbout(p, aboutToken(tokenID), "token %s: its entry %d differs from the signed entry", tokenID, n)
		}
		if e.Type == Claimed {
			claims++
		}
		if data.Token != tokenID || (i == 0) != (e.Type == Generated) || e.Type == Claimed && data.Claim != claims {
			return s.alarmAbout(p, aboutToken(tokenID), "token %s: entry %d does not continue its history", tokenID, n)
		}
		fold.Add(merkle.LeafHash(raw[i]))
		h.Data, h.Meta.Proof = append(h.Data, e), append(h.Meta.Proof, append([]merkle.Hash{}, proof...)) // never null in JSON
	}
	private, err := s.signer(ctx, acct, l)
	if err != nil {
		return err
	}
	h.Meta.All, err = merkle.SignSubset(merkle.Subset{
		Subject: subjectOf(tokenID), Tree: h.Head.Size, Head: merkle.Head{Origin: h.Head.Origin, Size: fold.Size(), Root: fold.Root()},
	}, private)
	return err
}

func subjectOf(tokenID string) string { return "token/" + tokenID }

func readEntry(n int64, b []byte) (Entry, error) {
	var l leaf
	if b == nil {
		return Entry{}, relay.Errorf(relay.KindUnexpected, "entry %d is missing", n)
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return Entry{}, fmt.Errorf("entry %d: %w", n, err)
	}
	return Entry{Sequence: n, Type: l.Type, At: l.At, Data: l.Data, Hash: merkle.LeafHash(b).String(), Leaf: b}, nil
}

// Overviews lists the ledgers of an account (0 for all accounts) by account and id.
func (s *Service) Overviews(ctx context.Context, acct relay.AccountID) ([]PlacedLog, error) {
	logs, err := s.deps.Store.Logs(ctx)
	logs = slices.DeleteFunc(logs, func(l PlacedLog) bool { return acct != 0 && l.Account != acct })
	slices.SortFunc(logs, func(a, b PlacedLog) int { return comparePlaces(a.Place, b.Place) })
	return logs, err
}

// Tokens returns up to limit tokens of a ledger whose ids have a prefix, the latest generated
// first. It omits tokens that were generated at or after the sequence beforeSeq; 0 means no bound.
// It returns relay.KindNotFound if the account does not have the ledger.
func (s *Service) Tokens(ctx context.Context, acct relay.AccountID, ledgerID, idPrefix string, beforeSeq int64, limit int) ([]ListedToken, error) {
	tokens, err := s.deps.Store.TokensOf(ctx, acct, ledgerID, idPrefix, beforeSeq, limit)
	if err == nil && len(tokens) == 0 {
		_, err = s.Ledger(ctx, acct, ledgerID)
	}
	return tokens, err
}

// LoggedEntry is an entry of a ledger and the id of its token.
type LoggedEntry struct {
	Entry
	Token string
}

// Recent returns up to limit entries of a ledger before the sequence end (0 for the newest),
// newest first. It returns relay.KindNotFound if the account does not have the ledger.
func (s *Service) Recent(ctx context.Context, acct relay.AccountID, ledgerID string, end int64, limit int) ([]LoggedEntry, error) {
	log, err := s.deps.Store.Log(ctx, acct, ledgerID)
	if err != nil {
		return nil, err
	}
	if log == (Log{}) {
		if _, err := s.Ledger(ctx, acct, ledgerID); err != nil {
			return nil, err
		}
	}
	if end == 0 || end > log.Entries {
		end = log.Entries
	}
	rows, err := s.deps.Store.Rows(ctx, acct, ledgerID, max(0, end-int64(limit)), end)
	if err != nil {
		return nil, err
	}
	entries := make([]LoggedEntry, 0, len(rows))
	for _, row := range slices.Backward(rows) {
		e, err := readEntry(row.Sequence, row.Bytes)
		if err != nil {
			return nil, relay.Errorf(relay.KindUnexpected, "ledger %s: %w", ledgerID, err)
		}
		entries = append(entries, LoggedEntry{e, row.Token})
	}
	return entries, nil
}
