package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/event"
	registry "github.com/penstock/penstock/relay/gateway"
)

// embeddedStore is a SQLite database of the data directory.
type embeddedStore struct {
	database
	file  string
	kinds []event.Kind // kinds of traffic that are processed into the database
	// otherWrites describes the writes that do not come from the journal.
	otherWrites string
}

// database is a *db.DB or a *readings.Store.
type database interface {
	Progress() *db.Progress
	CheckIntegrity(ctx context.Context) error
	Damaged() <-chan struct{}
}

// watchIntegrity checks the whole database after the start, and once more when an operation
// finds damage, so that the log states the extent of the damage.
func (s *embeddedStore) watchIntegrity(ctx context.Context, log *slog.Logger) {
	for range 2 {
		if err := s.CheckIntegrity(ctx); err != nil {
			if ctx.Err() == nil {
				log.Error("the integrity check of a database failed", "file", s.file, "error", err)
			}
			return
		}
		select {
		case <-s.Damaged():
		case <-ctx.Done():
			return
		}
	}
}

// catchUp reverts the journals if an embedded store has lost transactions: their entries are
// processed again from the first one that the store may lack. Messages that were due while the lost
// writes were made get the state unknown, because they may have been sent.
func (m *membership) catchUp(ctx context.Context, stores []embeddedStore) error {
	for _, store := range stores {
		loss := store.Progress().Loss()
		if !loss.Found && !loss.Unknown {
			continue
		}
		count, err := store.catchUp(loss, m.intakes, m.log)
		if err != nil {
			return fmt.Errorf("%s: %w", store.file, err)
		}
		if loss.Found && store.file == db.File && m.HaltReason() == "" {
			// afterRestore runs before trackPositions, so that a start after a crash repeats it.
			unknown, err := m.afterRestore(ctx, registry.Halt{Node: m.self.Node, Since: loss.Until, LastWrite: loss.Since})
			if err != nil {
				return fmt.Errorf("%s: set the state of messages that may have been sent: %w", store.file, err)
			}
			if unknown > 0 {
				m.log.Error("parts of messages may have been sent: their state is unknown until they are resent or deleted", "file", store.file, "parts", unknown)
			}
		}
		if loss.Found {
			if !m.lostWrites || loss.Since.Before(m.lostSince) {
				m.lostSince = loss.Since
			}
			if until := cmp.Or(loss.Until, m.self.StartedAt); until.After(m.lostUntil) {
				m.lostUntil = until
			}
			m.lostWrites = true
		}
		m.reverted += count
	}
	return nil
}

// trackPositions makes each transaction of the embedded stores save the positions up to which the
// journals have been processed.
func trackPositions(stores []embeddedStore, intakes map[event.Kind]*intake.Intake) {
	for _, store := range stores {
		store.Progress().Follow(func() map[string]uint64 { return processedPositions(intakes) })
	}
}

// acceptEarlier accepts embedded records that are older than the witness, because catchUp
// processes the missing entries. Records from `penstock restore` wait for `penstock recover`
// instead.
func (m *membership) acceptEarlier(ctx context.Context, records *db.DB) error {
	current, err := m.readState(ctx)
	if err != nil {
		return err
	}
	if current.Database == m.witness.Database && current.Beats < m.witness.Beats && !m.witness.Restored {
		m.witness.Beats = current.Beats
	}
	// The checkpoint writes the database id to the file: the id must not be lost with the
	// write-ahead log.
	return records.Checkpoint(ctx)
}

func (s *embeddedStore) catchUp(loss db.Loss, intakes map[event.Kind]*intake.Intake, log *slog.Logger) (count int, err error) {
	since := "the beginning"
	if !loss.Since.IsZero() {
		since = loss.Since.UTC().Format(time.RFC3339Nano)
	}
	if loss.Found {
		log.Error("a database has lost its newest writes; those that did not come from the journal may be missing", "file", s.file, "since", since, "may_be_missing", s.otherWrites)
	} else {
		log.Warn("it is unknown whether a database has all writes: the file with the number of writes is missing or damaged",
			"file", s.file, "commits_file", s.file+db.CommitsSuffix)
	}
	for _, kind := range s.kinds {
		position := loss.Positions[string(kind)]
		n, firstSeq, err := intakes[kind].Revert(position)
		if err != nil {
			return count, err
		}
		if count += int(n); n > 0 {
			log.Warn("the journal is processed again", "kind", string(kind), "file", s.file, "from", firstSeq, "entries", n)
		}
		if firstSeq > position+1 {
			log.Error("entries that a database lacks are no longer in the journal", "kind", string(kind), "file", s.file,
				"first_missing", position+1, "last_missing", firstSeq-1)
		}
	}
	return count, nil
}

// processedPositions returns the sequence numbers up to which the journals have been processed.
func processedPositions(intakes map[event.Kind]*intake.Intake) map[string]uint64 {
	positions := make(map[string]uint64, len(intakes))
	for kind, intake := range intakes {
		if seq, ok := intake.DurableSeq(); ok {
			positions[string(kind)] = seq
		}
	}
	return positions
}
