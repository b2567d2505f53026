package job

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/penstock/penstock/relay"
)

// State is the state of a job.
type State string

// The states. Completed and failed are final.
const (
	Queued     State = "queued"
	Processing State = "processing"
	Completed  State = "completed"
	Failed     State = "failed"
)

// States lists every state, in order.
func States() []State { return []State{Queued, Processing, Completed, Failed} }

// Ended reports whether the state is final.
func (s State) Ended() bool { return s == Completed || s == Failed }

// Kind is the type of a job, for example token.claim. It selects the Runner.
type Kind string

// Job is a piece of work for an account.
type Job struct {
	ID      string          `json:"id"`
	Account relay.AccountID `json:"account"`
	Kind    Kind            `json:"kind"`
	// Input is the Runner's input. It never changes and does not contain unencrypted secrets.
	Input     json.RawMessage `json:"input,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	// Retention is the time for which the record is kept after the end of the job; 0 means
	// permanently.
	Retention time.Duration `json:"keep,omitempty"`
	// List is the list of the account's jobs that contains the job; empty means none.
	List string `json:"list,omitempty"`
	// Name is a name that the account has chosen; it may be empty.
	Name string `json:"name,omitempty"`

	// State and the fields below change.
	State State `json:"state"`
	// Settlement describes the effect of the job. It is saved in the transaction that has the effect.
	// If Settlement is set, a Runner repeats only the notifications.
	Settlement json.RawMessage `json:"settled,omitempty"`
	// Result is the Runner's result; only when completed.
	Result json.RawMessage `json:"result,omitempty"`
	// Error is the reason for the failure or for the next try.
	Error string `json:"error,omitempty"`
	// Tries is the number of started runs, except runs that only waited.
	Tries     int       `json:"tries"`
	UpdatedAt time.Time `json:"updated_at"`
	// Due is the time at which a worker may run the job; zero if it has ended.
	Due time.Time `json:"due,omitzero"`
}

// Ref names a job.
type Ref struct {
	Account relay.AccountID
	ID      string
}

// Outcome is the result of a run. If RetryAt is set, the job stays processing and runs again
// at that time. Otherwise it ends, as failed if Error is set.
type Outcome struct {
	Result  json.RawMessage
	Error   string
	RetryAt time.Time
	// Waits is set if the run does not count as a try, because it only checked whether
	// other work has ended.
	Waits bool
}

// State returns the state of the job after the outcome.
func (o Outcome) State() State {
	switch {
	case !o.RetryAt.IsZero():
		return Processing
	case o.Error != "":
		return Failed
	}
	return Completed
}

// Failure is an error that ends a job as failed; its text is shown to the
// account.
type Failure struct{ Reason string }

// Error returns the reason.
func (f *Failure) Error() string { return f.Reason }

// Fail returns a Failure.
func Fail(reason string) error { return &Failure{Reason: reason} }

// Reason returns the reason of a Failure; ok is false for any other error.
func Reason(err error) (reason string, ok bool) {
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		return "", false
	}
	return f.Reason, true
}

// Pause is an error that requests another run after a delay. It is not a failure and
// does not count as a try.
type Pause time.Duration

// Error returns the delay.
func (p Pause) Error() string { return "continues in " + time.Duration(p).String() }

// Runner runs a job of one kind and returns its result, which is saved as JSON. It may be called
// again for a job that it has finished. A Failure ends the job. After a Pause or any other
// error the job runs again.
type Runner func(ctx context.Context, j Job) (result any, err error)

// Submitter accepts new jobs.
type Submitter interface {
	// Submit saves a job and schedules it. If it returns no error, the job will run.
	Submit(ctx context.Context, j Job) error
}

// Getter loads jobs.
type Getter interface {
	// Get loads a job. It returns relay.KindNotFound if the account has no job with the id.
	Get(ctx context.Context, acct relay.AccountID, id string) (Job, error)
}
