package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/penstock/penstock/relay"
)

// Audit verifies every declared ledger as Verify does, and returns the number of faults. It
// raises an alarm for each ledger with faults; the next audit without faults clears the alarm.
// The error names the ledgers that could not be verified. Audit stops if the store is unavailable.
func (s *Service) Audit(ctx context.Context) (faults int, err error) {
	logs, err := s.deps.Store.Logs(ctx)
	if err != nil {
		return 0, err
	}
	for _, log := range logs {
		if !log.Declared() { // LostLedgers reports the ledger
			continue
		}
		r, failed := s.Verify(ctx, log.Account, log.Ledger)
		switch {
		case corrupt(failed):
			r.addFault(-1, "it cannot be verified: "+failed.Error())
		case relay.KindOf(failed) == relay.KindUnavailable || ctx.Err() != nil:
			return faults, errors.Join(err, failed)
		case failed != nil:
			err = errors.Join(err, fmt.Errorf("%s: %w", log.Place, failed))
			continue
		}
		label := log.Place.String() + ": audit"
		if r.Count == 0 {
			s.alarms.clear(label)
			continue
		}
		faults += r.Count
		text := fmt.Sprintf("%s: the audit found faults, the first: %s", log.Place, r.Faults[0])
		s.alarms.raise(label, text)
	}
	return faults, err
}

// verifyTokens checks that gateways wrote the entries of a ledger, and that the tokens match
// their entries. Entries may be added during the check.
func (s *Service) verifyTokens(ctx context.Context, p Place, entries int64, r *Report) error {
	if entries == 0 {
		return nil
	}
	a, err := s.authenticator(ctx, p)
	if err != nil {
		return err
	}
	for start := int64(0); start < entries; start += batchSize {
		end := min(start+batchSize, entries)
		rows, err := s.deps.Store.Rows(ctx, p.Account, p.Ledger, start, end)
		if err != nil {
			return err
		}
		for _, row := range rows {
			switch {
			case !a.authentic(row):
				r.addFault(row.Sequence, notAuthentic)
			case row.Orphan && row.Position == 0:
				r.addFault(-1, fmt.Sprintf("token %s: it is missing, although entry %d generated it", row.Token, row.Sequence))
			}
		}
		if int64(len(rows)) != end-start {
			r.addFault(-1, fmt.Sprintf("entries from %d to %d are missing: there are %d", start, end-1, len(rows)))
		}
	}
	for lastID := ""; ; {
		list, err := s.deps.Store.Standings(ctx, p.Account, lastID, batchSize)
		if err != nil {
			return err
		}
		for _, st := range list {
			lastID = st.ID
			if st.Token.Ledger != p.Ledger {
				continue
			}
			if fault := a.standingFault(st); fault != "" {
				r.addFault(-1, aboutToken(st.ID)+": "+fault)
			}
			if st.Account != p.Account {
				r.addFault(-1, aboutToken(st.ID)+": its link leads to another account or is missing")
			}
		}
		if len(list) < batchSize {
			return nil
		}
	}
}

// table is a map that is safe for concurrent use.
type table[K comparable, V any] struct {
	mu   sync.Mutex
	rows map[K]V
}

func (t *table[K, V]) get(key K) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[key]
}

func (t *table[K, V]) set(key K, value V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		t.rows = make(map[K]V)
	}
	t.rows[key] = value
}

func (t *table[K, V]) clear(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rows, key)
}

func (t *table[K, V]) snapshot() map[K]V {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.rows)
}

// alarms holds the text of each unresolved fault of the store, by a label that names the ledger or
// the token.
type alarms struct{ table[string, string] }

// maxAlarms limits the alarms about tokens: if there are maxAlarms alarms, alarms about further
// tokens are dropped.
const maxAlarms = 100

func aboutToken(id string) string { return "token " + id }

func (a *alarms) raise(label, text string) {
	known := a.snapshot()
	if known[label] != "" || len(known) < maxAlarms || !strings.HasPrefix(label, aboutToken("")) {
		a.set(label, text)
	}
}

// alarm raises an alarm about a ledger and returns relay.KindUnavailable: operations on the
// ledger are retried until its store matches the signed head.
func (s *Service) alarm(p Place, format string, args ...any) error {
	return s.alarmAbout(p, p.String(), format, args...)
}

func (s *Service) alarmAbout(p Place, label, format string, args ...any) error {
	text := p.String() + ": " + fmt.Sprintf(format, args...)
	s.alarms.raise(label, text)
	return &relay.Error{Kind: relay.KindUnavailable, Message: text}
}

// alarmMismatch raises an alarm about a token if err is a Mismatch. It returns other errors
// unchanged.
func (s *Service) alarmMismatch(err error) error {
	if m, ok := errors.AsType[*Mismatch](err); ok {
		return s.alarmAbout(m.Place, aboutToken(m.Token), "%s", m)
	}
	return err
}

// corrupt reports whether an error means that stored data are invalid, rather than that the
// store is unavailable.
func corrupt(err error) bool {
	return err != nil && relay.KindOf(err) == relay.KindUnexpected &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}
