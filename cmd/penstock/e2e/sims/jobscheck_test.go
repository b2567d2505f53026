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

// requestAll requests two jobs for each SIM, one after the other, for several SIMs at the same
// time. It closes the returned channel when all jobs are requested.
func (r *jobRound) requestAll(iccids []string) <-chan struct{} {
	queue := make(chan string, 2*len(iccids))
	for range 2 {
		for _, iccid := range iccids {
			queue <- iccid
		}
	}
	close(queue)
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for iccid := range queue {
				r.request(iccid)
			}
		})
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	return done
}

// request requests the job that suits the state of a SIM, until a job has begun. If a request
// has no answer, the state of the SIM shows whether the job has begun.
func (r *jobRound) request(iccid string) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for unsure := false; ; <-tick.C {
		sim, err := r.sim(iccid)
		if err != nil {
			continue
		}
		if sim.Current != sim.Requested {
			if unsure {
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
		a, err := r.acme.Try(http.MethodPost, "/v3/mno/"+iccid+"/"+path, body)
		unsure = unsure || err != nil
		if r.note(iccid, a, err) {
			return
		}
	}
}

// note records an answer and reports whether a job has begun.
func (r *jobRound) note(iccid string, a e2e.Response, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.answers["none"]++
		return false
	}
	r.answers[fmt.Sprint(a.Status)]++
	if a.Status != http.StatusOK {
		return false
	}
	_, id, _ := strings.Cut(a.Body, `"data":{"id":"`)
	r.accepted[id[:36]] = iccid
	return true
}

func (r *jobRound) sim(iccid string) (e2e.SIMState, error) {
	a, err := r.acme.Try(http.MethodGet, "/v3/mno/"+iccid, "")
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("status %d", a.Status)
	}
	var answer struct{ Data e2e.SIMState }
	if err == nil {
		a.Decode(r.t, &answer)
	}
	return answer.Data, err
}

// unfinished returns the number of jobs that have not ended, or 1 if it is unknown.
func (r *jobRound) unfinished() (n int) {
	for _, status := range []string{"queued", "processing"} {
		var list struct{ Meta struct{ Total int } }
		a, err := r.acme.Try(http.MethodGet, "/v3/mno/job?per_page=1&status="+status, "")
		if err != nil || a.Status != http.StatusOK {
			return 1
		}
		a.Decode(r.t, &list)
		n += list.Meta.Total
	}
	return n
}

// check compares the jobs with the operator's commands, the events and the SIMs.
func (r *jobRound) check(jobs []e2e.SIMJob, states map[string]string, p *simOperatorPeer, e *simEvents) {
	t := r.t
	t.Helper()
	for _, event := range e.invalid {
		t.Errorf("an invalid event: %s", event)
	}
	if p.faults > 0 {
		t.Errorf("%d requests to the operator were not a command", p.faults)
	}
	listed, ended := map[string]bool{}, e.ended()
	history := map[string][]string{} // of completed jobs, by SIM
	for _, j := range jobs {
		c, event := p.commands[j.ID], ended["job-"+j.ID]
		if listed[j.ID] || j.Status != "completed" && j.Status != "failed" {
			t.Errorf("job %s is %s: listed twice, or without an end", j.ID, j.Status)
		}
		listed[j.ID] = true
		if refused := strings.Contains(c.status, "refused"); c.Action != j.Action || refused != (j.Status == "failed") {
			t.Errorf("job %s to %s is %s, but the operator has %s: %s", j.ID, j.Action, j.Status, c.Action, c.status)
		}
		if event.Type != "job."+j.Status || event.Data.ICCID != c.ICCID || event.Data.Action != j.Action {
			t.Errorf("job %s to %s is %s, but its event is %s", j.ID, j.Action, j.Status, event.body)
		}
		if j.Status == "completed" {
			history[c.ICCID] = append(history[c.ICCID], j.ID)
			states[c.ICCID] = stateAfter(j.Action)
		}
	}
	if len(p.commands) != len(jobs) || len(ended) != len(jobs) {
		t.Errorf("%d jobs, %d commands, %d events about ended jobs", len(jobs), len(p.commands), len(ended))
	}
	for id, iccid := range r.accepted {
		if !listed[id] || p.commands[id].ICCID != iccid {
			t.Errorf("the job %s of %s was accepted, but is missing", id, iccid)
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
			t.Errorf("%s is %s, requested %s, but its jobs lead to %s", iccid, sim.Current, sim.Requested, states[iccid])
		}
		if !slices.Equal(history[iccid], p.effects[iccid]) {
			t.Errorf("%s: completed jobs %v, effects %v", iccid, history[iccid], p.effects[iccid])
		}
	}
}
