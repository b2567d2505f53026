package lease

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/gateway"
)

// maxMoved is the largest number of leases moved in one call of the store.
const maxMoved = 500

// Store moves the leases of records; outbox.Store and message.Store implement it.
type Store[R comparable] interface {
	// Renew moves the end of leases and returns the records of which the caller
	// still has the lease.
	Renew(ctx context.Context, ls []relay.Lease[R], until time.Time) ([]R, error)
	// Release ends leases, so that the records are due at due.
	Release(ctx context.Context, ls []relay.Lease[R], due time.Time) error
}

// Hold is this process's hold on one record. Workers embed it in their items.
type Hold[R comparable] struct {
	Ref         R
	end         time.Time // the end of the lease that the store has confirmed last
	latestEnd   time.Time // the latest end that the store may have, if a response was lost
	leasedAgain bool      // leased again while it was held
}

// NewHold returns the hold on a record that was just leased until end.
func NewHold[R comparable](ref R, end time.Time) Hold[R] { return Hold[R]{Ref: ref, end: end} }

// lease returns the lease for the store to compare with its own.
func (h *Hold[R]) lease() relay.Lease[R] {
	if h.latestEnd.After(h.end) {
		return relay.Lease[R]{Ref: h.Ref, End: h.latestEnd}
	}
	return relay.Lease[R]{Ref: h.Ref, End: h.end}
}

// Options configures a Set; all fields but Gate are required.
type Options[R comparable] struct {
	Store    Store[R]
	Gate     *gateway.Gate
	Duration time.Duration // of a lease
	Now      func() time.Time
	Log      *slog.Logger
}

// Set contains the records that this process holds, from the lease until the outcome is saved
// or the lease is released.
type Set[R comparable] struct {
	opts Options[R]

	mu          sync.Mutex
	holds       map[R]*Hold[R]
	reserved    map[R]struct{} // records whose leases are being acquired
	spareLeases []relay.Lease[R]
}

// NewSet returns an empty Set.
func NewSet[R comparable](o Options[R]) *Set[R] {
	return &Set[R]{opts: o, holds: make(map[R]*Hold[R]), reserved: make(map[R]struct{})}
}

// Closed reports whether the gate is closed: nothing may be leased, and no work may
// begin.
func (s *Set[R]) Closed() bool { return s.opts.Gate.Closed() }

// Reserve reports whether the caller may acquire the lease of a record. It returns false if
// the gate is closed, if this process holds the record, which can look due in a store that
// executed a call late or twice, or if another goroutine is acquiring the lease. If Reserve
// returns true, the caller must call Unreserve after it has added the record.
func (s *Set[R]) Reserve(ref R) bool {
	if s.Closed() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, reserved := s.reserved[ref]
	if reserved || s.holds[ref] != nil {
		return false
	}
	s.reserved[ref] = struct{}{}
	return true
}

// Unreserve ends a reservation.
func (s *Set[R]) Unreserve(ref R) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reserved, ref)
}

// Add holds a record that was leased. It returns false if the record is already held. The new
// lease is then released when the current hold ends.
func (s *Set[R]) Add(h *Hold[R]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hold := s.holds[h.Ref]; hold != nil {
		if hold.leasedAgain = true; h.end.After(hold.latestEnd) {
			hold.latestEnd = h.end
		}
		return false
	}
	s.holds[h.Ref] = h
	return true
}

// Has reports whether this process holds a record.
func (s *Set[R]) Has(ref R) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds[ref] != nil
}

// Drop ends the hold on a record whose outcome is saved, or whose lease is lost or will be
// released by the caller. It reports whether the record was leased again meanwhile;
// ReleaseSpare releases that lease.
func (s *Set[R]) Drop(ref R) (spare bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holds[ref]
	delete(s.holds, ref)
	if h == nil || !h.leasedAgain {
		return false
	}
	s.spareLeases = append(s.spareLeases, h.lease())
	return true
}

// Lease returns the lease of a held record.
func (s *Set[R]) Lease(h *Hold[R]) relay.Lease[R] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.lease()
}

// MayBegin reports whether work on a held record may begin: the gate is open, and the lease
// has not expired. A lease expires while the store is unavailable, and another process may
// then hold the record.
func (s *Set[R]) MayBegin(h *Hold[R]) bool {
	if s.Closed() {
		return false
	}
	now := s.opts.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.end.After(now)
}

// SetLatestEnd records the end to which a call is about to move a lease, because the response to
// the call may be lost.
func (s *Set[R]) SetLatestEnd(h *Hold[R], until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.latestEnd = until
}

// Renew renews the leases that end soon, once. It records the new end of each valid lease
// before the call, because the response to the call may be lost.
func (s *Set[R]) Renew(ctx context.Context) {
	now := s.opts.Now()
	newEnd := now.Add(s.opts.Duration)
	var leases []relay.Lease[R]
	s.mu.Lock()
	for _, h := range s.holds {
		if !h.end.Before(newEnd.Add(-s.opts.Duration / 3)) {
			continue
		}
		leases = append(leases, h.lease())
		if now.Before(h.end) {
			h.latestEnd = newEnd
		}
	}
	s.mu.Unlock()
	for ls := range slices.Chunk(leases, maxMoved) {
		callCtx, cancel := context.WithTimeout(ctx, storeTimeout)
		renewed, err := s.opts.Store.Renew(callCtx, ls, newEnd)
		cancel()
		s.mu.Lock()
		for _, ref := range renewed {
			if h := s.holds[ref]; h != nil {
				h.end = newEnd
			}
		}
		s.mu.Unlock()
		if err != nil {
			s.opts.Log.WarnContext(ctx, "leases not renewed", "count", len(ls), "error", err)
			return
		}
	}
}

// RenewEvery calls Renew after each third of the lease's duration until ctx ends.
func (s *Set[R]) RenewEvery(ctx context.Context) { Every(ctx, s.opts.Duration/3, s.Renew) }

// Release releases leases, so that the records are due at due. Leases that cannot be released
// expire.
func (s *Set[R]) Release(ctx context.Context, ls []relay.Lease[R], due time.Time) {
	for chunk := range slices.Chunk(ls, maxMoved) {
		callCtx, cancel := context.WithTimeout(ctx, storeTimeout)
		err := s.opts.Store.Release(callCtx, chunk, due)
		cancel()
		if err != nil {
			s.opts.Log.WarnContext(ctx, "leases not released", "count", len(ls), "error", err)
			return
		}
	}
}

// LeasesByDelay has the leases of records for which there was no capacity, by the delay until the
// records are due again.
type LeasesByDelay[R comparable] map[time.Duration][]relay.Lease[R]

// ReleaseAfter releases leases. Each record is due after its delay.
func (s *Set[R]) ReleaseAfter(ctx context.Context, unplaced LeasesByDelay[R]) {
	for wait, ls := range unplaced {
		s.Release(ctx, ls, s.opts.Now().Add(wait))
	}
}

// AddSpare adds leases that the next ReleaseSpare releases.
func (s *Set[R]) AddSpare(ls ...relay.Lease[R]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spareLeases = append(s.spareLeases, ls...)
}

// ReleaseSpare releases the spare leases. Their records are due at once.
func (s *Set[R]) ReleaseSpare(ctx context.Context) {
	s.mu.Lock()
	ls := s.spareLeases
	s.spareLeases = nil
	s.mu.Unlock()
	s.Release(ctx, ls, s.opts.Now())
}
