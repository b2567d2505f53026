package event

import (
	"context"

	"github.com/penstock/penstock/relay/account"
)

// Statuses stores the states of the events of one node that did not simply succeed.
// An event without a status is done if its consumer is past it, else pending; one
// that is stored as pending was deferred and is processed again.
type Statuses interface {
	// Set stores statuses; one with State Done and no Outcome deletes the
	// stored status.
	Set(ctx context.Context, kind Kind, all []Status) error
	// Get returns the statuses of a range of sequences, both ends included.
	Get(ctx context.Context, kind Kind, from, to uint64) (map[uint64]Status, error)
	// List returns the statuses in a state with a sequence below before, newest first.
	List(ctx context.Context, kind Kind, state State, before uint64, limit int) ([]Status, error)
	// Deferred returns the statuses of pending events: of the accounts after one, by
	// account, the oldest events of each first.
	Deferred(ctx context.Context, kind Kind, after account.ID, limit int) ([]Status, error)
	// Counts returns how many statuses there are by state.
	Counts(ctx context.Context, kind Kind) (map[State]int, error)
	// Trim deletes the statuses below a sequence, whose records are gone.
	Trim(ctx context.Context, kind Kind, below uint64) error
}
