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

func register(r *e2e.SIMJobRound, t *testing.T) {
	t.Helper()
	var made struct{ Data struct{ ID string } }
	r.Acme.Post("/v3/mno/subscriber/register",
		`{"forename": "A", "surname": "B", "address": "C", "post_code": "D", "contact_no": "1"}`).Decode(t, &made)
	r.Subscriber = made.Data.ID
}

// askAll asks for two jobs of each SIM, one after the other, several SIMs at a
// time; what it returns is closed at the end.
func askAll(r *e2e.SIMJobRound, iccids []string) <-chan struct{} {
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
				ask(r, iccid)
			}
		})
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	return done
}

// ask asks for the job that a SIM is ready for until one is begun. Without an
// answer it looks at the SIM again, which tells whether one was.
func ask(r *e2e.SIMJobRound, iccid string) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for unsure := false; ; <-tick.C {
		one, err := sim(r, iccid)
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
			path, body = "activate", fmt.Sprintf(`{"subscriber": %q}`, r.Subscriber)
		case "active":
			path = "suspend"
		}
		a, err := r.Acme.Try(http.MethodPost, "/v3/mno/"+iccid+"/"+path, body)
		unsure = unsure || err != nil
		if note(r, iccid, a, err) {
			return
		}
	}
}

// note remembers an answer and reports whether a job was begun.
func note(r *e2e.SIMJobRound, iccid string, a e2e.Response, err error) bool {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if err != nil {
		r.Answers["none"]++
		return false
	}
	r.Answers[fmt.Sprint(a.Status)]++
	if a.Status != http.StatusOK {
		return false
	}
	_, id, _ := strings.Cut(a.Body, `"data":{"id":"`)
	r.Accepted[id[:36]] = iccid
	return true
}

func sim(r *e2e.SIMJobRound, iccid string) (e2e.SIMState, error) {
	a, err := r.Acme.Try(http.MethodGet, "/v3/mno/"+iccid, "")
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("status %d", a.Status)
	}
	var one struct{ Data e2e.SIMState }
	if err == nil {
		a.Decode(r.G.T, &one)
	}
	return one.Data, err
}

// unfinished is how many jobs have not ended.
func unfinished(r *e2e.SIMJobRound) (n int) {
	for _, status := range []string{"queued", "processing"} {
		var list struct{ Meta struct{ Total int } }
		a, err := r.Acme.Try(http.MethodGet, "/v3/mno/job?per_page=1&status="+status, "")
		if err != nil || a.Status != http.StatusOK {
			return 1
		}
		a.Decode(r.G.T, &list)
		n += list.Meta.Total
	}
	return n
}

// check compares what the jobs say with the operator, the events and the SIMs.
func check(r *e2e.SIMJobRound, t *testing.T, found []e2e.SIMJob, states map[string]string, p *simOperatorPeer, e *simEvents) {
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
			t.Errorf("%+v: listed twice, or without an end", j)
		}
		known[j.ID] = true
		if refused := strings.Contains(c.status, "refused"); c.Action != j.Action || refused != (j.Status == "failed") {
			t.Errorf("%+v is not what the operator knows: %+v", j, c)
		}
		if event.Type != "job."+j.Status || event.Data.ICCID != c.ICCID || event.Data.Action != j.Action {
			t.Errorf("%+v was told as %s", j, event.body)
		}
		if j.Status == "completed" {
			history[c.ICCID] = append(history[c.ICCID], j.ID)
			states[c.ICCID] = stateAfter(j.Action)
		}
	}
	if len(p.commands) != len(found) || len(told) != len(found) {
		t.Errorf("%d jobs, %d commands, %d ends were told", len(found), len(p.commands), len(told))
	}
	for id, iccid := range r.Accepted {
		if !known[id] || p.commands[id].ICCID != iccid {
			t.Errorf("the job %s of %s was accepted and is lost", id, iccid)
		}
	}
	checkSIMs(r, t, states, history, p)
}

func stateAfter(action string) string {
	return map[string]string{"activate_sim": "active", "unsuspend_sim": "active", "suspend_sim": "suspended"}[action]
}

// checkSIMs compares each SIM with its history: that of its jobs and that which the
// operator saw.
func checkSIMs(r *e2e.SIMJobRound, t *testing.T, states map[string]string, history map[string][]string, p *simOperatorPeer) {
	t.Helper()
	for _, iccid := range slices.Sorted(maps.Keys(states)) {
		one, err := sim(r, iccid)
		relaytest.NoError(t, err)
		if one.Current != states[iccid] || one.Requested != one.Current {
			t.Errorf("%+v, but its jobs lead to %s", one, states[iccid])
		}
		if !slices.Equal(history[iccid], p.effects[iccid]) {
			t.Errorf("%s: completed jobs %v, effects %v", iccid, history[iccid], p.effects[iccid])
		}
	}
}
