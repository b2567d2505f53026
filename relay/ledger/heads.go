package ledger

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/ledger/merkle"
	"github.com/penstock/penstock/relay/outbox"
)

// EventHead is the type of the event that notifies an account of a ledger's new head.
const EventHead = "ledger.head"

// HeadsOf returns a Heads in memory, which begins with a copy of heads.
func HeadsOf(heads map[Place]string) Heads {
	return &memoryHeads{table[Place, string]{rows: maps.Clone(heads)}}
}

type memoryHeads struct{ table[Place, string] }

func (m *memoryHeads) Last(p Place) string { return m.get(p) }

func (m *memoryHeads) Keep(p Place, signed string) error {
	if signed == "" {
		m.clear(p)
	} else {
		m.set(p, signed)
	}
	return nil
}

func (m *memoryHeads) All() map[Place]string { return m.snapshot() }

// examined is a head that passed examine, and the log with which it was examined.
type examined struct {
	log  Log
	head merkle.Head
}

// lastExamined returns the last examined head of a ledger; false if the log has changed since the
// examination.
func (s *Service) lastExamined(p Place, log Log) (merkle.Head, bool) {
	previous := s.trusted.get(p)
	return previous.head, log.Head != "" && log.Head == previous.log.Head && log.SealedHead == previous.log.SealedHead &&
		log.Head == s.deps.Heads.Last(p) && log.Signed == previous.head.Size && log.Entries >= log.Signed
}

// examine checks the stored head of a ledger and returns the opened head. The head must be signed by
// the ledger's key, sealed, have the size of the signed part of the log, and extend the last
// head in Heads. examine then publishes the head, if NotifyHeads is set, and stores it in Heads. A
// log without entries may have no head yet. The caller holds the ledger's lock, so that heads are
// stored in order.
func (s *Service) examine(ctx context.Context, p Place, log Log) (merkle.Head, error) {
	lastHead := s.deps.Heads.Last(p)
	if log == (Log{}) && lastHead == "" {
		return merkle.Head{}, nil
	}
	head, ok := s.lastExamined(p, log)
	if !ok {
		var fault string
		var err error
		if head, fault, err = s.openHead(ctx, p, log, lastHead); err != nil {
			return head, err
		}
		if fault != "" {
			return head, s.alarm(p, "%s", fault)
		}
		// If publishing fails, the next examination publishes the head. The id of the event derives
		// from the head, so that the gateways send it once.
		if log.Head != lastHead && s.deps.Events != nil && s.deps.NotifyHeads {
			err := s.deps.Events.Notify(ctx, p.Account, outbox.Event{
				ID: "head-" + TokenID(log.Head)[:32], Type: EventHead, CreatedAt: s.deps.Now().UTC(), About: p.Ledger,
				Data: map[string]any{"ledger": p.Ledger, "checkpoint": log.Head},
			})
			if err != nil {
				return head, err
			}
		}
		if log.Head != lastHead {
			if err := s.deps.Heads.Keep(p, log.Head); err != nil {
				return head, relay.Errorf(relay.KindUnavailable, "%s: its head was not saved: %w", p, err)
			}
		}
		s.trusted.set(p, examined{log, head})
	}
	s.alarms.clear(p.String())
	return head, nil
}

// openHead opens the stored head and compares it with the log, the sealed head and the last
// head. fault describes the difference; empty if there is none.
func (s *Service) openHead(ctx context.Context, p Place, log Log, lastHead string) (head merkle.Head, fault string, err error) {
	if log.Head == "" {
		return head, "its signed head is missing", nil
	}
	key, err := s.existingKey(ctx, p)
	if corrupt(err) {
		return head, "the key that signs its heads cannot be decrypted: " + err.Error(), nil
	}
	if err != nil {
		return head, "", err
	}
	if key == "" {
		return head, "the key that signs its heads is missing", nil
	}
	if head, err = merkle.Open(log.Head, key); corrupt(err) {
		return head, "its stored head is not signed by its key: " + err.Error(), nil
	}
	if fault, err = s.sealFault(ctx, p, log, lastHead); fault != "" || err != nil {
		return head, fault, err
	}
	if head.Size != log.Signed || log.Entries < log.Signed {
		return head, fmt.Sprintf("its log has %d entries, %d of them signed, and its signed head has %d", log.Entries, log.Signed, head.Size), nil
	}
	fault, err = s.extensionFault(ctx, p, head, lastHead, key)
	return head, fault, err
}

// extensionFault describes the fault of a head that does not extend the last head; empty if it does.
func (s *Service) extensionFault(ctx context.Context, p Place, head merkle.Head, lastHead, key string) (string, error) {
	if lastHead == "" {
		return "", nil
	}
	earlier, err := merkle.Open(lastHead, key)
	if corrupt(err) {
		return "the last head that this gateway stored is not signed by the ledger's key: " + err.Error(), nil
	}
	if earlier.Size > head.Size {
		return fmt.Sprintf("its head goes back from %d entries to %d", earlier.Size, head.Size), nil
	}
	err = merkle.CheckExtends(head, earlier, s.reader(ctx, p.Account, p.Ledger))
	if corrupt(err) {
		return fmt.Sprintf("its first %d entries do not match the last head that this gateway stored", earlier.Size), nil
	}
	return "", err
}

// sealFault describes how the sealed head differs from the head; empty if it does not. A ledger
// that an earlier version wrote has no sealed head until its next entry. This is accepted if lastHead
// is empty: Heads has no head of the ledger, or an operator accepts the head in the store.
func (s *Service) sealFault(ctx context.Context, p Place, log Log, lastHead string) (string, error) {
	if log.SealedHead == "" && lastHead == "" {
		return "", nil
	}
	if log.SealedHead == "" {
		return "its sealed head is missing", nil
	}
	sealed, err := base64.StdEncoding.DecodeString(log.SealedHead)
	var plain []byte
	if err == nil {
		plain, err = s.deps.Vault.Open(ctx, p.Account, sealed, "head of "+p.Ledger)
	}
	if corrupt(err) || err == nil && string(plain) != log.Head {
		return "its sealed head differs from its head", nil
	}
	return "", err
}

// Check returns an error if a ledger has a fault: a missing, older or different head, a missing
// ledger, or a token that differs from its entries. The error names up to five faults.
func (s *Service) Check(ctx context.Context) error {
	lost, err := s.LostLedgers(ctx)
	if err != nil {
		return err
	}
	problems := append(lost, slices.Sorted(maps.Values(s.alarms.snapshot()))...)
	if len(problems) == 0 {
		return nil
	}
	const maxNamed = 5
	text := strings.Join(problems[:min(maxNamed, len(problems))], "; ")
	if len(problems) > maxNamed {
		text += fmt.Sprintf("; and %d more", len(problems)-maxNamed)
	}
	return errors.New(text + "; see docs/operations/ledgers.md")
}

// hashFault describes how the hash of a ledger differs from the hash in its head; empty if it does
// not.
func hashFault(hash, head string) string {
	origin, _, found := strings.Cut(head, "\n")
	if !found || origin == merkle.Origin(hash) {
		return ""
	}
	return "its hash was changed: its head belongs to " + origin
}

// LostLedgers examines the head of every ledger and lists the lost ledgers: ledgers with entries but
// without a declaration, ledgers with a head in Heads but without a log, and ledgers whose hash
// differs from the hash in their head. It copies heads that other gateways have signed to Heads, so
// that each gateway notices a missing head.
func (s *Service) LostLedgers(ctx context.Context) (lost []string, err error) {
	logs, err := s.deps.Store.Logs(ctx)
	if err != nil {
		return nil, err
	}
	heads := s.deps.Heads.All()
	for _, log := range logs {
		_, known := heads[log.Place]
		delete(heads, log.Place)
		if !log.Declared() && log.Log.Entries > 0 {
			lost = append(lost, fmt.Sprintf("%s: it is no longer declared, its log has %d entries", log.Place, log.Log.Entries))
		}
		if fault := hashFault(log.Hash, log.Log.Head); fault != "" {
			lost = append(lost, log.Place.String()+": "+fault)
		}
		if !known && log.Log.Head == "" { // a new ledger, whose first head another gateway may be signing
			continue
		}
		if _, same := s.lastExamined(log.Place, log.Log); same && s.alarms.get(log.Place.String()) == "" {
			continue
		}
		if err := s.examineIdle(ctx, log.Place); err != nil && s.alarms.get(log.Place.String()) == "" {
			return nil, err
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(heads), comparePlaces) {
		lost = append(lost, p.String()+": its log is gone")
	}
	return lost, nil
}

// examineIdle examines a log, unless its entries are being signed.
func (s *Service) examineIdle(ctx context.Context, p Place) error {
	lock := s.lockOf(p)
	if !lock.TryLock() {
		return nil
	}
	defer lock.Unlock()
	log, err := s.deps.Store.Log(ctx, p.Account, p.Ledger)
	if err == nil {
		_, err = s.examine(ctx, p, log)
	}
	return err
}

func comparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Account, b.Account), strings.Compare(a.Ledger, b.Ledger))
}

// AcceptHeads replaces the heads in Heads by the heads in the store, after an operator has restored
// the database from a backup. It returns the differences. It does not accept a head that is
// unsigned, differs from its sealed head, or is inconsistent with its log.
func (s *Service) AcceptHeads(ctx context.Context) (accepted []string, err error) {
	for p, lastHead := range s.deps.Heads.All() {
		difference, err := s.acceptHead(ctx, p, lastHead)
		if err != nil {
			return accepted, err
		}
		if difference != "" {
			accepted = append(accepted, difference)
		}
	}
	slices.Sort(accepted)
	return accepted, nil
}

// acceptHead replaces the last head of a ledger by the stored head, unless the stored head extends
// it. If the log is missing, acceptHead removes the last head. It returns the difference; empty if
// nothing was replaced or removed.
func (s *Service) acceptHead(ctx context.Context, p Place, lastHead string) (string, error) {
	lock := s.lockOf(p)
	lock.Lock()
	defer lock.Unlock()
	log, err := s.deps.Store.Log(ctx, p.Account, p.Ledger)
	if err != nil {
		return "", err
	}
	difference := "its log is missing"
	if log != (Log{}) {
		head, fault, err := s.openHead(ctx, p, log, "")
		if fault != "" || err != nil {
			return "", err
		}
		key, err := s.existingKey(ctx, p)
		if err != nil {
			return "", err
		}
		if difference, err = s.extensionFault(ctx, p, head, lastHead, key); difference == "" || err != nil {
			return "", err
		}
	}
	if err := s.deps.Heads.Keep(p, log.Head); err != nil {
		return "", err
	}
	s.alarms.clear(p.String())
	return p.String() + ": " + difference, nil
}

// Heads stores the last signed head of each ledger outside the database, so that an attacker
// who can write to the database cannot change it. It is safe for concurrent use.
type Heads interface {
	// Last returns the last head of a ledger; empty if there is none.
	Last(p Place) string
	// Keep replaces the last head durably. An empty head removes the last head.
	Keep(p Place, signed string) error
	// All returns the last head of every ledger.
	All() map[Place]string
}
