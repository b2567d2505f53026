package ledger

import (
	"context"
	"fmt"
	"sync"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/ledger/merkle"
)

// batch is how many entries one step seals or reads.
const batch = 500

// place names a ledger.
type place struct {
	acct   account.ID
	ledger string
}

// locks lets one goroutine of this process seal a ledger at a time. Those that
// waited mostly find their entries sealed.
type locks struct {
	mu   sync.Mutex
	held map[place]*sync.Mutex
}

func (l *locks) of(p place) *sync.Mutex {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[p] == nil {
		l.held[p] = new(sync.Mutex)
	}
	return l.held[p]
}

// seal brings the tree and its signed head up to the entries there are.
func (s *Service) seal(ctx context.Context, acct account.ID, l Ledger) (Log, error) {
	lock := s.sealing.of(place{acct, l.ID})
	lock.Lock()
	defer lock.Unlock()
	for {
		log, err := s.deps.Store.Log(ctx, acct, l.ID)
		if err != nil || log.Sealed == log.Entries && log.Head != "" {
			return log, err
		}
		if err := s.sealBatch(ctx, acct, l, log); err != nil {
			return log, fmt.Errorf("ledger %s: seal: %w", l.ID, err)
		}
	}
}

// sealBatch adds entries to the tree. Another gateway that is faster has done the
// same work: the caller looks again.
func (s *Service) sealBatch(ctx context.Context, acct account.ID, l Ledger, log Log) error {
	private, err := s.signer(ctx, acct, l)
	if err != nil {
		return err
	}
	fold, err := merkle.Resume(log.Sealed, s.reader(ctx, acct, l.ID))
	if err != nil {
		return err
	}
	upTo := min(log.Entries, log.Sealed+batch)
	entries, err := s.deps.Store.Entries(ctx, acct, l.ID, run(log.Sealed, upTo))
	if err != nil {
		return err
	}
	var hashes []merkle.Hash
	for i, e := range entries {
		if e == nil {
			return fmt.Errorf("entry %d is missing", log.Sealed+int64(i))
		}
		hashes = append(hashes, fold.Add(merkle.LeafHash(e))...)
	}
	head, err := merkle.Sign(merkle.Head{Origin: merkle.Origin(l.Hash), Size: upTo, Root: fold.Root()}, private)
	if err != nil {
		return err
	}
	_, err = s.deps.Store.Extend(ctx, acct, l.ID, log.Sealed, Log{Entries: log.Entries, Sealed: upTo, Head: head}, hashes)
	return err
}

// run lists the numbers from a up to, not including, b.
func run(a, b int64) []int64 {
	out := make([]int64, 0, max(0, b-a))
	for n := a; n < b; n++ {
		out = append(out, n)
	}
	return out
}

// reader reads a ledger's stored hashes.
func (s *Service) reader(ctx context.Context, acct account.ID, ledgerID string) merkle.Read {
	return func(indexes []int64) ([]merkle.Hash, error) {
		return s.deps.Store.Hashes(ctx, acct, ledgerID, indexes)
	}
}

// signer returns the private key of a ledger's heads, made at its first use.
func (s *Service) signer(ctx context.Context, acct account.ID, l Ledger) (string, error) {
	b, err := s.secret(ctx, acct, "signer "+l.ID, func() ([]byte, error) {
		private, _, err := merkle.NewKey(merkle.Origin(l.Hash))
		return []byte(private), err
	})
	return string(b), err
}

// secret returns a secret of an account, opened, which is made if there is none.
func (s *Service) secret(ctx context.Context, acct account.ID, name string, make func() ([]byte, error)) ([]byte, error) {
	sealed, err := s.deps.Store.Secret(ctx, acct, name)
	if relay.KindOf(err) == relay.KindNotFound {
		var fresh []byte
		if fresh, err = make(); err != nil {
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

// Key returns the public key that the heads of a ledger are verified with.
func (s *Service) Key(ctx context.Context, acct account.ID, ledgerID string) (string, error) {
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
