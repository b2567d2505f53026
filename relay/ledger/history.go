package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/ledger/merkle"
)

// History is the events of a token, with their proof.
type History struct {
	Entries []Entry
	Head    merkle.Head
	Signed  string // the head, as a signed checkpoint
	Key     string // the public key that verifies it
	// Proofs are the inclusion proofs of the entries, in their order.
	Proofs [][]merkle.Hash
	// All reports that the entries are all that the token has as of the head: a
	// merkle.Subset, signed by the ledger's key.
	All string
}

// History returns all entries of a token, oldest first, each with the proof that
// it is part of the ledger as its head says, and signed that there are no others.
//
// It returns Invalid if the token is unknown or not the account's, or its private
// token is wrong.
func (s *Service) History(ctx context.Context, acct relay.AccountID, c Credential) (History, error) {
	t, err := s.known(ctx, acct, c)
	if err != nil {
		return History{}, err
	}
	return s.historyOf(ctx, acct, t)
}

// Inspect returns a token by its id, with its history, for the operator, who has
// neither its text nor its private token. It returns NotFound if the account has none
// of the id.
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
	err = s.prove(ctx, acct, l, t.ID, sequences, &h)
	return h, err
}

// headOf signs a ledger's entries and returns its head, opened.
func (s *Service) headOf(ctx context.Context, acct relay.AccountID, l Ledger) (h History, err error) {
	log, err := s.signEntries(ctx, acct, l)
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

// prove adds the entries of a token with their proofs, and signs that they are all of
// their token: they begin with its generation, and no claim is left out.
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
			return s.alarmAbout(p, aboutToken(tokenID), "token %s: its entry %d is not the one that was signed", tokenID, n)
		}
		if e.Type == Claimed {
			claims++
		}
		if data.Token != tokenID || (i == 0) != (e.Type == Generated) || e.Type == Claimed && data.Claim != claims {
			return s.alarmAbout(p, aboutToken(tokenID), "token %s: entry %d is not the next of its history", tokenID, n)
		}
		fold.Add(merkle.LeafHash(raw[i]))
		h.Entries, h.Proofs = append(h.Entries, e), append(h.Proofs, proof)
	}
	private, err := s.signer(ctx, acct, l)
	if err != nil {
		return err
	}
	h.All, err = merkle.SignSubset(merkle.Subset{
		Subject: subjectOf(tokenID), Tree: h.Head.Size, Head: merkle.Head{Origin: h.Head.Origin, Size: fold.Size(), Root: fold.Root()},
	}, private)
	return err
}

func subjectOf(tokenID string) string { return "token/" + tokenID }

func readEntry(n int64, b []byte) (Entry, error) {
	var f leaf
	if b == nil {
		return Entry{}, relay.Errorf(relay.KindUnexpected, "entry %d is missing", n)
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return Entry{}, fmt.Errorf("entry %d: %w", n, err)
	}
	return Entry{Sequence: n, Type: f.Type, At: f.At, Data: f.Data, Hash: merkle.LeafHash(b).String(), Leaf: b}, nil
}

// Overview is a ledger of an account with the state of its log.
type Overview struct {
	LogOf
	Ledger Ledger // the zero Ledger if it is declared no more
}

// Overviews lists the ledgers of an account, 0 for all, by account and id.
func (s *Service) Overviews(ctx context.Context, acct relay.AccountID) ([]Overview, error) {
	logs, err := s.deps.Store.Logs(ctx)
	if err != nil {
		return nil, err
	}
	declared := make(map[relay.AccountID]map[string]Ledger)
	var overviews []Overview
	for _, log := range logs {
		if acct != 0 && log.Account != acct {
			continue
		}
		if declared[log.Account] == nil {
			ledgers, err := s.deps.Store.Ledgers(ctx, log.Account)
			if err != nil {
				return nil, err
			}
			declared[log.Account] = db.By(ledgers, func(l Ledger) string { return l.ID })
		}
		overviews = append(overviews, Overview{log, declared[log.Account][log.Place.Ledger]})
	}
	slices.SortFunc(overviews, func(a, b Overview) int { return comparePlaces(a.Place, b.Place) })
	return overviews, nil
}

// Tokens returns tokens of a ledger whose ids begin with a text, the latest generated first,
// below a sequence (0 for all). It returns NotFound if the account has no such ledger.
func (s *Service) Tokens(ctx context.Context, acct relay.AccountID, ledgerID, idPrefix string, beforeSeq int64, limit int) ([]ListedToken, error) {
	tokens, err := s.deps.Store.TokensOf(ctx, acct, ledgerID, idPrefix, beforeSeq, limit)
	if err == nil && len(tokens) == 0 {
		_, err = s.Ledger(ctx, acct, ledgerID)
	}
	return tokens, err
}

// Logged is an entry of a ledger and the id of the token that it is about.
type Logged struct {
	Entry
	Token string
}

// Recent returns the entries of a ledger before one, newest first, at most limit; 0
// stands for the newest. It returns NotFound if the account has no such ledger.
func (s *Service) Recent(ctx context.Context, acct relay.AccountID, ledgerID string, end int64, limit int) ([]Logged, error) {
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
	entries := make([]Logged, 0, len(rows))
	for _, row := range slices.Backward(rows) {
		e, err := readEntry(row.Sequence, row.Bytes)
		if err != nil {
			return nil, relay.Errorf(relay.KindUnexpected, "ledger %s: %w", ledgerID, err)
		}
		entries = append(entries, Logged{e, row.Token})
	}
	return entries, nil
}
