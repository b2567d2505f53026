package event

import "context"

// Marks keeps what became of the events of one node that were set aside. An
// event without a mark is done when its consumer is past it, else pending.
type Marks interface {
	// Set records marks; one with State Done removes what was recorded.
	Set(ctx context.Context, kind Kind, marks []Mark) error
	// Get returns the marks of a range of sequences, both ends included.
	Get(ctx context.Context, kind Kind, from, to uint64) (map[uint64]Mark, error)
	// List returns marks in a state with a sequence below before, newest first.
	List(ctx context.Context, kind Kind, state State, before uint64, limit int) ([]Mark, error)
	// Counts returns how many marks there are by state.
	Counts(ctx context.Context, kind Kind) (map[State]int, error)
	// Trim forgets the marks below a sequence, whose records are gone.
	Trim(ctx context.Context, kind Kind, below uint64) error
}
