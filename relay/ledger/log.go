package ledger

import (
	"context"
	"encoding/base64"
	"fmt"
	"sync"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/ledger/merkle"
)

// batchSize is the largest number of entries that are signed or read at a time.
const batchSize = 500

// lockOf returns the lock that lets one goroutine of this process sign a ledger at a time. When a
// waiting goroutine acquires the lock, its entries are usually signed already.
func (s *Service) lockOf(p Place) *sync.Mutex {
	lock, _ := s.signing.LoadOrStore(p, new(sync.Mutex))
	return lock.(*sync.Mutex)
}

// signEntries adds all unsigned entries to the tree and signs the new head. It returns an error if
// the stored tree does not match the last head.
func (s *Service) signEntries(ctx context.Context, acct relay.AccountID, l Ledger) (Log, error) {
	p := Place{acct, l.ID}
	lock := s.lockOf(p)
	lock.Lock()
	defer lock.Unlock()
	for {
		log, err := s.deps.Store.Log(ctx, acct, l.ID)
		if err != nil {
			return log, err
		}
		head, err := s.examine(ctx, p, log)
		if fault := hashFault(l.Hash, log.Head); err == nil && fault != "" {
			err = relay.Errorf(relay.KindUnavailable, "%s: %s", p, fault)
		}
		if err != nil || log.Head != "" && log.Signed == log.Entries {
			return log, err
		}
		if err := s.signBatch(ctx, p, l, log, head); err != nil {
			return log, fmt.Errorf("ledger %s: sign: %w", l.ID, err)
		}
	}
}

// signBatch adds the next unsigned entries to the tree and signs the new head. It raises an alarm
// if a gateway did not write one of the entries. If another gateway has extended the tree
// meanwhile, signBatch changes nothing, and the caller reads the log again.
func (s *Service) signBatch(ctx context.Context, p Place, l Ledger, log Log, head merkle.Head) error {
	private, err := s.signer(ctx, p.Account, l)
	if err != nil {
		return err
	}
	fold, err := merkle.Resume(log.Signed, s.reader(ctx, p.Account, l.ID))
	if err != nil {
		return err
	}
	if log.Head != "" && fold.Root() != head.Root {
		return s.alarmAbout(p, treeLabel(p), "its stored tree does not match its signed head: entries or hashes were changed")
	}
	end := min(log.Entries, log.Signed+batchSize)
	rows, err := s.deps.Store.Rows(ctx, p.Account, l.ID, log.Signed, end)
	if err != nil {
		return err
	}
	a, err := NewAuthenticator(p, []byte(private))
	if err != nil {
		return err
	}
	var hashes []merkle.Hash
	for n := log.Signed; n < end; n++ {
		i := int(n - log.Signed)
		if i >= len(rows) || rows[i].Sequence != n {
			return s.alarmAbout(p, treeLabel(p), "entry %d is missing", n)
		}
		if !a.authentic(rows[i]) {
			return s.alarmAbout(p, treeLabel(p), "entry %d %s", n, notAuthentic)
		}
		hashes = append(hashes, fold.Add(merkle.LeafHash(rows[i].Bytes))...)
	}
	signed := Log{Entries: log.Entries, Signed: end}
	if signed.Head, err = merkle.Sign(merkle.Head{Origin: merkle.Origin(l.Hash), Size: end, Root: fold.Root()}, private); err != nil {
		return err
	}
	sealed, err := s.deps.Vault.Seal(ctx, p.Account, []byte(signed.Head), "head of "+p.Ledger)
	if err != nil {
		return err
	}
	signed.SealedHead = base64.StdEncoding.EncodeToString(sealed)
	if _, err = s.deps.Store.Extend(ctx, p.Account, l.ID, log.Signed, signed, hashes); err == nil {
		s.alarms.clear(treeLabel(p))
	}
	return err
}

func treeLabel(p Place) string { return p.String() + ": tree" }

// numbersBetween lists the numbers from a to b-1.
func numbersBetween(a, b int64) []int64 {
	numbers := make([]int64, 0, max(0, b-a))
	for n := a; n < b; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

func (s *Service) reader(ctx context.Context, acct relay.AccountID, ledgerID string) merkle.Read {
	return func(indexes []int64) ([]merkle.Hash, error) {
		return s.deps.Store.Hashes(ctx, acct, ledgerID, indexes)
	}
}

// signer returns the private key that signs a ledger's heads. The first call creates the key.
func (s *Service) signer(ctx context.Context, acct relay.AccountID, l Ledger) (string, error) {
	b, err := s.secret(ctx, acct, signerName(l.ID), func() ([]byte, error) {
		private, _, err := merkle.NewKey(merkle.Origin(l.Hash))
		return []byte(private), err
	})
	return string(b), err
}

// secret returns an opened secret of an account. If the secret is missing, it saves the result of
// create, or returns relay.KindNotFound if create is nil.
func (s *Service) secret(ctx context.Context, acct relay.AccountID, name string, create func() ([]byte, error)) ([]byte, error) {
	sealed, err := s.deps.Store.Secret(ctx, acct, name)
	if relay.KindOf(err) == relay.KindNotFound && create != nil {
		var fresh []byte
		if fresh, err = create(); err != nil {
			return nil, err
		}
		if sealed, err = s.deps.Vault.Seal(ctx, acct, fresh, name); err != nil {
			return nil, err
		}
		sealed, err = s.deps.Store.KeepSecret(ctx, acct, name, sealed)
	}
	if err != nil {
		return nil, err
	}
	return s.deps.Vault.Open(ctx, acct, sealed, name)
}

// Key returns the public key that verifies the heads of a ledger.
func (s *Service) Key(ctx context.Context, acct relay.AccountID, ledgerID string) (string, error) {
	l, err := s.Ledger(ctx, acct, ledgerID)
	if err != nil {
		return "", err
	}
	private, err := s.signer(ctx, acct, l)
	if err != nil {
		return "", err
	}
	return merkle.PublicOf(private)
}

// existingKey returns the public key of a ledger; empty if the ledger does not have one yet.
func (s *Service) existingKey(ctx context.Context, p Place) (string, error) {
	private, err := s.secret(ctx, p.Account, signerName(p.Ledger), nil)
	if relay.KindOf(err) == relay.KindNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return merkle.PublicOf(string(private))
}

func signerName(ledgerID string) string { return "signer " + ledgerID }
