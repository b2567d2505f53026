package event

import (
	"context"

	"github.com/penstock/penstock/relay/account"
)

// Marks keeps what became of the events of one node that were set aside. An
// event without a mark is done when its consumer is past it, else pending; one
// that is marked pending was put off and comes again.
type Marks interface {
	// Set records marks; one with State Done and no Outcome removes what was
	// recorded.
	Set(ctx context.Context, kind Kind, marks []Mark) error
	// Get returns the marks of a range of sequences, both ends included.
	Get(ctx context.Context, kind Kind, from, to uint64) (map[uint64]Mark, error)
	// List returns marks in a state with a sequence below before, newest first.
	List(ctx context.Context, kind Kind, state State, before uint64, limit int) ([]Mark, error)
	// PutOff returns marks of pending events: of the accounts after one, by
	// account, the oldest events of each first.
	PutOff(ctx context.Context, kind Kind, after account.ID, limit int) ([]Mark, error)
	// Counts returns how many marks there are by state.
	Counts(ctx context.Context, kind Kind) (map[State]int, error)
	// Trim forgets the marks below a sequence, whose records are gone.
	Trim(ctx context.Context, kind Kind, below uint64) error
}
