package sims

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// jobRound requests jobs for an account's SIMs and records the answers.
type jobRound struct {
	t          *testing.T
	acme       e2e.Client
	subscriber string

	mu       sync.Mutex
	accepted map[string]string // SIMs by the id of the accepted job
	answers  map[string]int    // number of answers by status
}

// requestAll requests two jobs for each SIM, one after the other, and for several SIMs at the same time.
// It closes the returned channel when all jobs are requested.
func (r *jobRound) requestAll(iccids []string) <-chan struct{} {
	queue := make(chan string, 2*len(iccids))
	for range 2 {
		for _, iccid := range iccids {
			queue <- iccid
		}
	}
	close(queue)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for iccid := range queue {
				r.request(iccid)
			}
		})
	}
	done := make(chan struct{})
	go func() { workers.Wait(); close(done) }()
	return done
}

// request requests a job for the state of a SIM until a job has begun. If a request has no answer, the
// state of the SIM shows whether the job has begun.
func (r *jobRound) request(iccid string) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for answerLost := false; ; <-tick.C {
		sim, err := r.sim(iccid)
		if err != nil {
			continue
		}
		if sim.Current != sim.Requested {
			if answerLost {
				return // the job has begun
			}
			continue // the previous job has not ended
		}
		path, body := "unsuspend", ""
		switch sim.Current {
		case "pending":
			path, body = "activate", fmt.Sprintf(`{"subscriber": %q}`, r.subscriber)
		case "active":
			path = "suspend"
		}
		resp, err := r.acme.Try(http.MethodPost, "/v3/mno/"+iccid+"/"+path, body)
		answerLost = answerLost || err != nil
		if r.recordAnswer(iccid, resp, err) {
			return
		}
	}
}

// recordAnswer records an answer, and reports whether a job has begun.
func (r *jobRound) recordAnswer(iccid string, resp e2e.Response, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.answers["none"]++
		return false
	}
	r.answers[fmt.Sprint(resp.Status)]++
	if resp.Status != http.StatusOK {
		return false
	}
	_, id, _ := strings.Cut(resp.Body, `"data":{"id":"`)
	r.accepted[id[:36]] = iccid
	return true
}

func (r *jobRound) sim(iccid string) (e2e.SIMState, error) {
	resp, err := r.acme.Try(http.MethodGet, "/v3/mno/"+iccid, "")
	if err == nil && resp.Status != http.StatusOK {
		err = fmt.Errorf("status %d", resp.Status)
	}
	var answer struct{ Data e2e.SIMState }
	if err == nil {
		resp.Decode(r.t, &answer)
	}
	return answer.Data, err
}

// unfinished returns the number of jobs that have not ended, or 1 if the number is unknown.
func (r *jobRound) unfinished() (n int) {
	for _, status := range []string{"queued", "processing"} {
		var list struct{ Meta struct{ Total int } }
		resp, err := r.acme.Try(http.MethodGet, "/v3/mno/job?per_page=1&status="+status, "")
		if err != nil || resp.Status != http.StatusOK {
			return 1
		}
		resp.Decode(r.t, &list)
		n += list.Meta.Total
	}
	return n
}

// check compares the jobs with the operator's commands, the events and the SIMs.
func (r *jobRound) check(jobs []e2e.SIMJob, states map[string]string, p *simOperatorPeer, e *simEvents) {
	t := r.t
	t.Helper()
	for _, event := range e.invalid {
		t.Errorf("invalid event: %s", event)
	}
	if p.invalidCount > 0 {
		t.Errorf("requests to the operator without a command = %d, want 0", p.invalidCount)
	}
	listedJobs, jobEvents := map[string]bool{}, e.jobEvents()
	history := map[string][]string{} // of completed jobs, by SIM
	for _, j := range jobs {
		c, event := p.commands[j.ID], jobEvents["job-"+j.ID]
		if listedJobs[j.ID] || j.Status != "completed" && j.Status != "failed" {
			t.Errorf("job %s is %s, want it listed once, completed or failed", j.ID, j.Status)
		}
		listedJobs[j.ID] = true
		if refused := strings.Contains(c.status, "refused"); c.Action != j.Action || refused != (j.Status == "failed") {
			t.Errorf("job %s (%s) is %s, but the command at the operator is %s: %s", j.ID, j.Action, j.Status, c.Action, c.status)
		}
		if event.Type != "job."+j.Status || event.Data.ICCID != c.ICCID || event.Data.Action != j.Action {
			t.Errorf("job %s (%s) is %s, but its event is %s", j.ID, j.Action, j.Status, event.body)
		}
		if j.Status == "completed" {
			history[c.ICCID] = append(history[c.ICCID], j.ID)
			states[c.ICCID] = stateAfter(j.Action)
		}
	}
	if len(p.commands) != len(jobs) || len(jobEvents) != len(jobs) {
		t.Errorf("jobs = %d, commands = %d, events about ended jobs = %d, want equal numbers", len(jobs), len(p.commands), len(jobEvents))
	}
	for id, iccid := range r.accepted {
		if !listedJobs[id] || p.commands[id].ICCID != iccid {
			t.Errorf("the accepted job %s of %s is missing", id, iccid)
		}
	}
	r.checkSIMs(states, history, p)
}

func stateAfter(action string) string {
	return map[string]string{"activate_sim": "active", "unsuspend_sim": "active", "suspend_sim": "suspended"}[action]
}

// checkSIMs compares the state of each SIM with its jobs, and the completed jobs with the
// changes at the operator.
func (r *jobRound) checkSIMs(states map[string]string, history map[string][]string, p *simOperatorPeer) {
	t := r.t
	t.Helper()
	for _, iccid := range slices.Sorted(maps.Keys(states)) {
		sim := relaytest.Must(r.sim(iccid))(t)
		if sim.Current != states[iccid] || sim.Requested != sim.Current {
			t.Errorf("%s: state = %s, requested state = %s, want %s", iccid, sim.Current, sim.Requested, states[iccid])
		}
		if !slices.Equal(history[iccid], p.effects[iccid]) {
			t.Errorf("%s: completed jobs = %v, effects at the operator = %v, want the same", iccid, history[iccid], p.effects[iccid])
		}
	}
}
