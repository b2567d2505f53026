package app

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// simRound asks for jobs and knows what was answered.
type simRound struct {
	g          *gateway
	acme       caller
	subscriber string

	mu       sync.Mutex
	accepted map[string]string // job → ICCID
	answers  map[string]int
}

func (r *simRound) register(t *testing.T) {
	t.Helper()
	var made struct{ Data struct{ ID string } }
	r.acme.post("/v3/mno/subscriber/register",
		`{"forename": "A", "surname": "B", "address": "C", "post_code": "D", "contact_no": "1"}`).into(t, &made)
	r.subscriber = made.Data.ID
}

// askAll asks for two jobs of each SIM, one after the other, several SIMs at a
// time; what it returns is closed at the end.
func (r *simRound) askAll(iccids []string) <-chan struct{} {
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
func (r *simRound) ask(iccid string) {
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
		a, err := r.acme.try(http.MethodPost, "/v3/mno/"+iccid+"/"+path, body)
		unsure = unsure || err != nil
		if r.note(iccid, a, err) {
			return
		}
	}
}

// note remembers an answer and reports whether a job was begun.
func (r *simRound) note(iccid string, a answer, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.answers["none"]++
		return false
	}
	r.answers[fmt.Sprint(a.status)]++
	if a.status != http.StatusOK {
		return false
	}
	_, id, _ := strings.Cut(a.body, `"data":{"id":"`)
	r.accepted[id[:36]] = iccid
	return true
}

type simShown struct {
	ICCID     string
	Current   string `json:"current_state"`
	Requested string `json:"requested_state"`
}

func (r *simRound) sim(iccid string) (simShown, error) {
	a, err := r.acme.try(http.MethodGet, "/v3/mno/"+iccid, "")
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("status %d", a.status)
	}
	var one struct{ Data simShown }
	if err == nil {
		a.into(r.g.t, &one)
	}
	return one.Data, err
}

type simJobShown struct{ ID, Action, Status string }

// unfinished is how many jobs have not ended.
func (r *simRound) unfinished() (n int) {
	for _, status := range []string{"queued", "processing"} {
		var list struct{ Meta struct{ Total int } }
		a, err := r.acme.try(http.MethodGet, "/v3/mno/job?per_page=1&status="+status, "")
		if err != nil || a.status != http.StatusOK {
			return 1
		}
		a.into(r.g.t, &list)
		n += list.Meta.Total
	}
	return n
}

// jobs lists all of the account's, in the order of their creation.
func (r *simRound) jobs(t *testing.T) (all []simJobShown) {
	t.Helper()
	for page := 1; ; page++ {
		var list struct {
			Data []simJobShown
			Meta struct{ Total int }
		}
		r.acme.get(fmt.Sprintf("/v3/mno/job?per_page=500&page=%d", page)).into(t, &list)
		all = append(all, list.Data...)
		if len(list.Data) == 0 {
			if len(all) != list.Meta.Total {
				t.Errorf("%d jobs of %d", len(all), list.Meta.Total)
			}
			return all
		}
	}
}

// check compares what the jobs say with the operator, the events and the SIMs.
func (r *simRound) check(t *testing.T, found []simJobShown, states map[string]string, p *simOperatorPeer, e *simEvents) {
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
	for id, iccid := range r.accepted {
		if !known[id] || p.commands[id].ICCID != iccid {
			t.Errorf("the job %s of %s was accepted and is lost", id, iccid)
		}
	}
	r.checkSIMs(t, states, history, p)
}

func stateAfter(action string) string {
	return map[string]string{"activate_sim": "active", "unsuspend_sim": "active", "suspend_sim": "suspended"}[action]
}

// checkSIMs compares each SIM with its history: that of its jobs and that which the
// operator saw.
func (r *simRound) checkSIMs(t *testing.T, states map[string]string, history map[string][]string, p *simOperatorPeer) {
	t.Helper()
	for _, iccid := range slices.Sorted(maps.Keys(states)) {
		one, err := r.sim(iccid)
		must(t, err)
		if one.Current != states[iccid] || one.Requested != one.Current {
			t.Errorf("%+v, but its jobs lead to %s", one, states[iccid])
		}
		if !slices.Equal(history[iccid], p.effects[iccid]) {
			t.Errorf("%s: completed jobs %v, effects %v", iccid, history[iccid], p.effects[iccid])
		}
	}
}
