package intake

import (
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
)

// Entries of more than largeWeight are deferred if another account has sent entries in
// the time of neighbourTime before: entries of that account would wait for them. Deferred
// entries are processed in turns of accounts.
const (
	largeWeight   = 1 << 20
	neighbourTime = 10 * time.Second
	largeReason   = "waits for its turn: the post is large, and other accounts send too"
)

// neighbours remembers of which two accounts the last entries are.
type neighbours struct {
	mu   sync.Mutex
	last [2]sighting
}

// sighting is the receipt of the last entry of an account.
type sighting struct {
	account relay.AccountID
	at      time.Time
}

// note notes an entry of an account, and reports whether another account has sent one
// shortly before.
func (n *neighbours) note(acct relay.AccountID, at time.Time) (others bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last[0].account != acct {
		n.last[1] = n.last[0]
	}
	n.last[0] = sighting{acct, at}
	return at.Sub(n.last[1].at).Abs() < neighbourTime // the clock may have been set back
}

// takeLarge removes the entries that are deferred from items, and returns their statuses.
func (i *Intake) takeLarge(items []Item) (kept, deferred []Item, statuses []event.Status) {
	kept = items[:0]
	for n := range items {
		it := items[n]
		others := i.neighbours.note(it.Entry.Account, it.Entry.ReceivedAt)
		if others && weight(it.Entry.Body) > largeWeight {
			deferred, statuses = append(deferred, it), append(statuses, it.Status(event.Pending, largeReason))
			continue
		}
		kept = append(kept, it)
	}
	return kept, deferred, statuses
}
