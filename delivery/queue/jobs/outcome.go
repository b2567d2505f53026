package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
)

// classify converts the result of a run into an outcome. Only a Failure fails
// the job at once; an unavailable back end or a shutdown never does.
func (j *Jobs) classify(one job.Job, result any, err error) job.Outcome {
	if err == nil {
		b, marshalErr := json.Marshal(result)
		if marshalErr == nil {
			return job.Outcome{Result: b}
		}
		err = marshalErr
	}
	if reason, ok := job.Reason(err); ok {
		return job.Outcome{Error: reason}
	}
	now := j.deps.Now()
	if wait, ok := errors.AsType[job.Pause](err); ok {
		return job.Outcome{Again: now.Add(max(0, time.Duration(wait))), Waits: true}
	}
	switch {
	case j.runCtx.Err() != nil:
		return job.Outcome{Error: "interrupted", Again: now}
	case relay.KindOf(err) == relay.KindUnavailable, errors.Is(err, context.DeadlineExceeded):
		return job.Outcome{Error: "a back end is unavailable", Again: now.Add(j.backoff(one.Tries))}
	case one.Tries >= j.opts.MaxTries:
		return job.Outcome{Error: "internal error"}
	}
	return job.Outcome{Error: "internal error", Again: now.Add(j.backoff(one.Tries))}
}

// backoff returns the delay before the next run, which doubles with every try.
func (j *Jobs) backoff(tries int) time.Duration {
	wait := j.opts.RetryDelay << min(max(tries-1, 0), 20)
	return min(wait, j.opts.MaxRetryDelay)
}
