package models_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/recordstest"
)

// modelJob is the model of a job.
type modelJob struct {
	State  job.State // empty: the job does not exist
	Due    float64   // -1 for none
	Tries  int
	Result string
	Error  string
}

func (m modelJob) String() string {
	if m.State == "" {
		return "none"
	}
	return fmt.Sprintf("%s, due %g, tries %d, result %q, error %q", m.State, m.Due, m.Tries, m.Result, m.Error)
}

// modelJobs are the jobs of the model.
type modelJobs [2]modelJob

func (m modelJobs) String() string { return m[0].String() + "; " + m[1].String() }

func jobModel() machine[modelJobs] {
	return machine[modelJobs]{
		begin: func(context.Context, *recordstest.Records, relay.AccountID) (modelJobs, error) {
			return modelJobs{}, nil
		},
		clone: func(e modelJobs) modelJobs { return e },
		draw:  drawJobOp, read: readJobs, show: modelJobs.String,
	}
}

func drawJobOp(t *rapid.T, s modelJobs, acct relay.AccountID, now float64) op[modelJobs] {
	n := rapid.IntRange(0, 1).Draw(t, "job")
	id, opTime := fmt.Sprint("job-", n), dbtest.TimeAt(now)
	switch rapid.SampledFrom([]string{"create", "lease", "lease", "finish", "finish"}).Draw(t, "kind") {
	case "create":
		return newOp[modelJobs](
			"create "+id,
			func(s *modelJobs) string {
				if s[n].State == "" {
					s[n] = modelJob{State: job.Queued, Due: now}
				}
				return ""
			},
			func(ctx context.Context, r *recordstest.Records) (string, error) {
				return "", r.Jobs.Create(ctx, job.Job{ID: id, Account: acct, Kind: "test", CreatedAt: opTime})
			},
		)
	case "lease":
		return newOp[modelJobs](
			"lease "+id,
			func(s *modelJobs) string {
				e := &s[n]
				if e.State == "" {
					return relay.KindNotFound.String()
				}
				leased := e.Due >= 0 && e.Due <= now
				if leased {
					e.State, e.Due, e.Tries = job.Processing, now+10, e.Tries+1
				}
				return fmt.Sprintf("%v %s", leased, e.State)
			},
			func(ctx context.Context, r *recordstest.Records) (string, error) {
				j, leased, err := r.Jobs.Lease(ctx, job.Ref{Account: acct, ID: id}, opTime, dbtest.TimeAt(now+10))
				return kindOf(fmt.Sprintf("%v %s", leased, j.State), err)
			},
		)
	}
	return drawFinishOp(t, s, n, acct, now)
}

// drawFinishOp draws the end of the current run or of a run with an expired lease.
func drawFinishOp(t *rapid.T, s modelJobs, n int, acct relay.AccountID, now float64) op[modelJobs] {
	tries := max(s[n].Tries-rapid.IntRange(0, 1).Draw(t, "stale"), 1)
	var o job.Outcome
	retryAt := -1.0
	outcome := rapid.SampledFrom([]string{"done", "failed", "retry", "waits"}).Draw(t, "outcome")
	switch outcome {
	case "done":
		o.Result = json.RawMessage(fmt.Sprintf(`"at %g"`, now))
	case "failed":
		o.Error = "refused"
	default:
		retryAt = now + 3
		o.RetryAt, o.Waits, o.Error = dbtest.TimeAt(retryAt), outcome == "waits", "not yet"
	}
	id := fmt.Sprint("job-", n)
	return newOp[modelJobs](
		fmt.Sprintf("finish %s, try %d: %s", id, tries, outcome),
		func(s *modelJobs) string {
			e := &s[n]
			if e.State != job.Queued && e.State != job.Processing {
				return ""
			}
			if o.Waits && e.Tries == tries {
				e.Tries--
			}
			e.State, e.Due, e.Error = o.State(), retryAt, o.Error
			if len(o.Result) > 0 {
				e.Result = string(o.Result)
			}
			return ""
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			return "", r.Jobs.Finish(ctx, job.Job{ID: id, Account: acct, Tries: tries}, o, dbtest.TimeAt(now))
		},
	)
}

func readJobs(ctx context.Context, r *recordstest.Records, _ modelJobs, acct relay.AccountID) (string, error) {
	var words []string
	for n := range 2 {
		e := modelJob{Due: -1}
		j, err := r.Jobs.Get(ctx, acct, fmt.Sprint("job-", n))
		if err != nil && relay.KindOf(err) != relay.KindNotFound {
			return "", err
		}
		if err == nil {
			e.State, e.Tries, e.Result, e.Error = j.State, j.Tries, string(j.Result), j.Error
			if !j.Due.IsZero() {
				e.Due = j.Due.Sub(dbtest.TimeAt(0)).Seconds()
			}
		}
		words = append(words, e.String())
	}
	return strings.Join(words, "; "), nil
}
