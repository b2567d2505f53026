package ledger

import (
	"context"
	"slices"

	"github.com/penstock/penstock/relay"
)

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
			declared[log.Account] = make(map[string]Ledger, len(ledgers))
			for _, l := range ledgers {
				declared[log.Account][l.ID] = l
			}
		}
		overviews = append(overviews, Overview{log, declared[log.Account][log.Place.Ledger]})
	}
	slices.SortFunc(overviews, func(a, b Overview) int { return comparePlaces(a.Place, b.Place) })
	return overviews, nil
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
