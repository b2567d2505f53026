package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
)

// judge decides where a job stands after a run. Only a Failure is the job's own;
// a back end that is down, and a shutdown, never fail one.
func (j *Jobs) judge(one job.Job, result any, err error) job.Outcome {
	if err == nil {
		b, bad := json.Marshal(result)
		if bad == nil {
			return job.Outcome{Result: b}
		}
		err = bad
	}
	if reason, ok := job.Reason(err); ok {
		return job.Outcome{Error: reason}
	}
	now := j.deps.Now()
	if wait, ok := errors.AsType[job.Pause](err); ok {
		return job.Outcome{Again: now.Add(max(0, time.Duration(wait))), Waits: true}
	}
	switch {
	case j.life.Err() != nil:
		return job.Outcome{Error: "interrupted", Again: now}
	case relay.KindOf(err) == relay.KindUnavailable, errors.Is(err, context.DeadlineExceeded):
		return job.Outcome{Error: "a back end is unavailable", Again: now.Add(j.pause(one.Tries))}
	case one.Tries >= j.opts.Tries:
		return job.Outcome{Error: "internal error"}
	}
	return job.Outcome{Error: "internal error", Again: now.Add(j.pause(one.Tries))}
}

// pause doubles with every try.
func (j *Jobs) pause(tries int) time.Duration {
	wait := j.opts.Again << min(max(tries-1, 0), 20)
	return min(wait, j.opts.AgainMax)
}
