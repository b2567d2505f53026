package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// sendUse reports the usage of a SIM: a byte each.
func (s *site) sendUse(ctx context.Context, n int) {
	id := fmt.Sprintf("use-%d", n)
	s.ledger.offer(ofUses, id)
	body := fmt.Sprintf(`{"id":%q,"iccid":%q,"start_time":%q,"type":"data","bytes":1,"duration":60}`+"\n", id, iccid(n), s.base.Format(time.RFC3339))
	s.post(ctx, ofUses, id, "/inbound/cdr/sim", body)
}

// sendJob has a SIM suspended or taken back into service, unless a job is under way.
// A SIM whose request got no answer may get a job at any time: it is used no more.
func (s *site) sendJob(ctx context.Context, n int) {
	if _, busy := s.busy.LoadOrStore(iccid(n), true); busy {
		return
	}
	if s.startJob(ctx, n) {
		s.busy.Delete(iccid(n))
	}
}

// startJob reports whether every request was answered.
func (s *site) startJob(ctx context.Context, n int) bool {
	a, _ := s.repeat(ctx, ofJobs, http.MethodGet, "/v3/mno/"+iccid(n), "")
	var one struct {
		Data struct {
			Current   string `json:"current_state"`
			Requested string `json:"requested_state"`
		}
	}
	if !a.done() || json.Unmarshal([]byte(a.body), &one) != nil || one.Data.Current != one.Data.Requested {
		return true
	}
	action := map[string]string{"active": "suspend", "suspended": "unsuspend"}[one.Data.Current]
	var begun struct{ Data struct{ ID string } }
	if a = s.callOnce(ctx, ofJobs, http.MethodPost, "/v3/mno/"+iccid(n)+"/"+action, ""); a.done() && s.read(a, &begun) == nil {
		s.ledger.ack(ofJobs, begun.Data.ID, "")
	}
	return !a.unavailable()
}

// sendClaim claims the ledger's token.
func (s *site) sendClaim(ctx context.Context, _ int) {
	var job struct{ JobID string }
	if a := s.callOnce(ctx, ofClaims, http.MethodPost, "/ledgers/tokens/claim", `{"token":"`+s.claims+`"}`); a.done() && s.read(a, &job) == nil {
		s.ledger.ack(ofClaims, job.JobID, "")
	}
}

// sendDevice makes a device, and deletes every second.
func (s *site) sendDevice(ctx context.Context, n int) {
	identifier := fmt.Sprintf("made-%d", n)
	s.ledger.offer(ofDevices, identifier)
	body := fmt.Sprintf(`{"location_id":"yard","decoder_id":"sent","identifier":%q,"name":"Made"}`, identifier)
	a := s.call(ctx, http.MethodPost, "/iot/devices/other", body)
	s.ledger.judge(ofDevices, a)
	var made struct{ Data struct{ ID string } }
	if !a.done() || s.read(a, &made) != nil {
		return
	}
	if n%2 == 0 {
		s.ledger.ack(ofDevices, identifier, made.Data.ID)
		return
	}
	s.ledger.offer(ofRemoved, identifier)
	if a, repeated := s.repeat(ctx, ofRemoved, http.MethodDelete, "/iot/devices/"+made.Data.ID, ""); a.done() || repeated && a.gone() {
		s.ledger.ack(ofRemoved, identifier, made.Data.ID)
	}
}

// findDevices looks for each device that was made, and for each that was deleted.
func (s *site) findDevices(ctx context.Context, f findings) error {
	for kind, undone := range map[string]string{ofDevices: "", ofRemoved: "it is there"} {
		for id := range s.ledger.sent(kind) {
			a := s.call(ctx, http.MethodGet, "/iot/devices/identifier/"+id, "")
			switch {
			case a.done():
				f.see(kind, id, 1, undone)
			case !a.gone():
				return s.read(a, nil)
			case kind == ofRemoved:
				f.see(kind, id, 1, "")
			}
		}
	}
	return nil
}

// pages reads a list whose pages have numbers to its end.
func pages[T any](ctx context.Context, s *site, path string) (records []T, err error) {
	for page := 1; ; page++ {
		var list struct{ Data []T }
		if err := s.load(ctx, fmt.Sprintf("%s?per_page=500&page=%d", path, page), &list); err != nil || len(list.Data) == 0 {
			return records, err
		}
		records = append(records, list.Data...)
	}
}

// findJobs looks for SIM jobs and for their callbacks.
func (s *site) findJobs(ctx context.Context, f findings) error {
	jobs, err := pages[struct{ ID, Action, Status string }](ctx, s, "/v3/mno/job")
	for _, j := range jobs {
		if strings.HasSuffix(j.Action, "suspend_sim") {
			f.see(ofJobs, j.ID, 1, s.jobUndone(j.Status, "job.completed "+j.ID))
		}
	}
	return err
}

// jobUndone returns what is missing of a job, of which the callback is told.
func (s *site) jobUndone(status, event string) string {
	switch {
	case status != "" && status != "completed":
		return "it is " + status
	case s.sink.times(event) == 0:
		return "the callback was not told"
	}
	return ""
}

// findClaims looks for the job of every claim that was acknowledged.
func (s *site) findClaims(ctx context.Context, f findings) error {
	for id := range s.ledger.sent(ofClaims) {
		var job struct{ Data struct{ Status string } }
		a := s.call(ctx, http.MethodGet, "/ledgers/jobs/"+id, "")
		if a.status == http.StatusNotFound {
			continue
		}
		if err := s.read(a, &job); err != nil {
			return err
		}
		f.see(ofClaims, id, 1, s.jobUndone(job.Data.Status, "token.claimed "+id))
	}
	return nil
}

// verifyLedger has the program verify the ledger, with every claim in it, and notes
// what it finds. It ends the gateways first.
func (s *site) verifyLedger(ctx context.Context) {
	for _, g := range s.gateways {
		if code := g.end(syscall.SIGTERM); code != 0 {
			s.note(fmt.Sprintf("%s ended with the exit code %d: %s", g.name, code, servers.Said(g.cmd)))
		}
	}
	gateway := s.gateways[0]
	cmd := exec.CommandContext(ctx, gateway.binary, "ledger", "verify", "--config", gateway.config)
	cmd.Env = append(os.Environ(), gateway.env...)
	output, err := cmd.CombinedOutput()
	entries, claims := 0, 0
	if m := regexp.MustCompile(`chaos/assets: (\d+) entries are as they were signed`).FindSubmatch(output); m != nil {
		entries, _ = strconv.Atoi(string(m[1]))
	}
	for _, item := range s.ledger.sent(ofClaims) {
		if item.acked {
			claims++
		}
	}
	if err != nil || entries < 1+claims {
		s.note(fmt.Sprintf("the ledger has %d entries for %d claims: %v: %s", entries, claims, err, output))
	}
}

// await waits for something that a job makes.
func (s *site) await(ctx context.Context, label string, ready func() (bool, error)) error {
	var lastErr error
	err := servers.UntilEvery(ctx, 100*time.Millisecond, s.settings.settle, label, func() (ok bool) {
		ok, lastErr = ready()
		return ok
	})
	return errors.Join(err, lastErr)
}

// findUses reads a file of all SIM CDRs.
func (s *site) findUses(ctx context.Context, f findings) error {
	span := fmt.Sprintf(`{"start_time":%q,"end_time":%q,"name":"chaos"}`, s.base.Add(-time.Hour).Format(time.RFC3339), s.base.Add(time.Hour).Format(time.RFC3339))
	var made struct{ Data struct{ ID string } }
	if err := s.read(s.call(ctx, http.MethodPost, "/v3/mno/job/cdr", span), &made); err != nil {
		return err
	}
	if err := s.await(ctx, "the file of SIM CDRs", func() (bool, error) {
		var job struct{ Data struct{ Status string } }
		err := s.load(ctx, "/v3/mno/job/"+made.Data.ID+"/status", &job)
		return job.Data.Status == "completed", err
	}); err != nil {
		return err
	}
	a := s.call(ctx, http.MethodGet, "/v3/mno/job/"+made.Data.ID+"/cdr/stream", "")
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err := errors.Join(s.read(a, nil), err); err != nil {
		return err
	}
	for _, row := range rows[min(1, len(rows)):] { // below the head
		f.seeOnce(ofUses, row[0])
	}
	return nil
}
