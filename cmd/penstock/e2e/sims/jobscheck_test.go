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

// jobRound has jobs done for an account's SIMs, and remembers what was answered.
type jobRound struct {
	t          *testing.T
	acme       e2e.Client
	subscriber string

	mu       sync.Mutex
	accepted map[string]string // SIMs by the jobs that were begun
	answers  map[string]int
}

// askAll asks for two jobs of each SIM, one after the other, several SIMs at a
// time; what it returns is closed at the end.
func (r *jobRound) askAll(iccids []string) <-chan struct{} {
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
				r.ask(iccid)
			}
		})
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	return done
}

// ask asks for the job that a SIM is ready for until one is begun. Without an
// answer it looks at the SIM again, which tells whether one was.
func (r *jobRound) ask(iccid string) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for unsure := false; ; <-tick.C {
		one, err := r.sim(iccid)
		if err != nil {
			continue
		}
		if one.Current != one.Requested {
			if unsure {
				return // it was begun
			}
			continue // the one before has not ended
		}
		path, body := "unsuspend", ""
		switch one.Current {
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

// note remembers an answer and reports whether a job was begun.
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
	var one struct{ Data e2e.SIMState }
	if err == nil {
		a.Decode(r.t, &one)
	}
	return one.Data, err
}

// unfinished is how many jobs have not ended.
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

// check compares what the jobs say with the operator, the events and the SIMs.
func (r *jobRound) check(found []e2e.SIMJob, states map[string]string, p *simOperatorPeer, e *simEvents) {
	t := r.t
	t.Helper()
	for _, wrong := range e.wrong {
		t.Errorf("an event: %s", wrong)
	}
	if p.faults > 0 {
		t.Errorf("%d commands were none", p.faults)
	}
	known, told := map[string]bool{}, e.ended()
	history := map[string][]string{} // of completed jobs, by SIM
	for _, j := range found {
		c, event := p.commands[j.ID], told["job-"+j.ID]
		if known[j.ID] || j.Status != "completed" && j.Status != "failed" {
			t.Errorf("job %s is %s: listed twice, or without an end", j.ID, j.Status)
		}
		known[j.ID] = true
		if refused := strings.Contains(c.status, "refused"); c.Action != j.Action || refused != (j.Status == "failed") {
			t.Errorf("job %s to %s is %s, but the operator knows %s: %s", j.ID, j.Action, j.Status, c.Action, c.status)
		}
		if event.Type != "job."+j.Status || event.Data.ICCID != c.ICCID || event.Data.Action != j.Action {
			t.Errorf("job %s to %s is %s, but was told as %s", j.ID, j.Action, j.Status, event.body)
		}
		if j.Status == "completed" {
			history[c.ICCID] = append(history[c.ICCID], j.ID)
			states[c.ICCID] = stateAfter(j.Action)
		}
	}
	if len(p.commands) != len(found) || len(told) != len(found) {
		t.Errorf("%d jobs, %d commands, %d ends were told", len(found), len(p.commands), len(told))
	}
	for id, iccid := range r.accepted {
		if !known[id] || p.commands[id].ICCID != iccid {
			t.Errorf("the job %s of %s was accepted and is lost", id, iccid)
		}
	}
	r.checkSIMs(states, history, p)
}

func stateAfter(action string) string {
	return map[string]string{"activate_sim": "active", "unsuspend_sim": "active", "suspend_sim": "suspended"}[action]
}

// checkSIMs compares each SIM with its history: that of its jobs and that which the
// operator saw.
func (r *jobRound) checkSIMs(states map[string]string, history map[string][]string, p *simOperatorPeer) {
	t := r.t
	t.Helper()
	for _, iccid := range slices.Sorted(maps.Keys(states)) {
		one := relaytest.Must(r.sim(iccid))(t)
		if one.Current != states[iccid] || one.Requested != one.Current {
			t.Errorf("%s is %s, requested %s, but its jobs lead to %s", iccid, one.Current, one.Requested, states[iccid])
		}
		if !slices.Equal(history[iccid], p.effects[iccid]) {
			t.Errorf("%s: completed jobs %v, effects %v", iccid, history[iccid], p.effects[iccid])
		}
	}
}
