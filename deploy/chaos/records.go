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

// sendUse posts a CDR with the usage of one byte by a SIM.
func (s *site) sendUse(ctx context.Context, n int) {
	id := fmt.Sprintf("use-%d", n)
	s.ledger.offer(usageKind, id)
	body := fmt.Sprintf(`{"id":%q,"iccid":%q,"start_time":%q,"type":"data","bytes":1,"duration":60}`+"\n", id, iccid(n), s.base.Format(time.RFC3339))
	s.post(ctx, usageKind, id, "/inbound/cdr/sim", body)
}

// sendJob suspends or unsuspends a SIM unless it has a job. A SIM whose request was not answered is
// not used again because the job may still start.
func (s *site) sendJob(ctx context.Context, n int) {
	if _, busy := s.busy.LoadOrStore(iccid(n), true); busy {
		return
	}
	if s.startJob(ctx, n) {
		s.busy.Delete(iccid(n))
	}
}

// startJob starts a job unless the SIM changes its state. It returns false, which means that the SIM
// must not be used again, if the request for the job got no answer or an answer that says unavailable.
func (s *site) startJob(ctx context.Context, n int) bool {
	a, _ := s.repeat(ctx, jobKind, http.MethodGet, "/v3/mno/"+iccid(n), "")
	var sim struct {
		Data struct {
			Current   string `json:"current_state"`
			Requested string `json:"requested_state"`
		}
	}
	if !a.ok() || json.Unmarshal([]byte(a.body), &sim) != nil || sim.Data.Current != sim.Data.Requested {
		return true
	}
	action := map[string]string{"active": "suspend", "suspended": "unsuspend"}[sim.Data.Current]
	var job struct{ Data struct{ ID string } }
	if a = s.callOnce(ctx, jobKind, http.MethodPost, "/v3/mno/"+iccid(n)+"/"+action, ""); a.ok() && s.read(a, &job) == nil {
		s.ledger.ack(jobKind, job.Data.ID, "")
	}
	return !a.unavailable()
}

// sendClaim claims the ledger's token.
func (s *site) sendClaim(ctx context.Context, _ int) {
	var job struct{ JobID string }
	if a := s.callOnce(ctx, claimKind, http.MethodPost, "/ledgers/tokens/claim", `{"token":"`+s.ledgerToken+`"}`); a.ok() && s.read(a, &job) == nil {
		s.ledger.ack(claimKind, job.JobID, "")
	}
}

// sendDevice creates a device, and deletes every second device.
func (s *site) sendDevice(ctx context.Context, n int) {
	identifier := fmt.Sprintf("made-%d", n)
	s.ledger.offer(deviceKind, identifier)
	body := fmt.Sprintf(`{"location_id":"yard","decoder_id":"sent","identifier":%q,"name":"Made"}`, identifier)
	a := s.call(ctx, http.MethodPost, "/iot/devices/other", body)
	s.ledger.countAnswer(deviceKind, a)
	var device struct{ Data struct{ ID string } }
	if !a.ok() || s.read(a, &device) != nil {
		return
	}
	if n%2 == 0 {
		s.ledger.ack(deviceKind, identifier, device.Data.ID)
		return
	}
	s.ledger.offer(deletedDeviceKind, identifier)
	if a, repeated := s.repeat(ctx, deletedDeviceKind, http.MethodDelete, "/iot/devices/"+device.Data.ID, ""); a.ok() || repeated && a.notFound() {
		s.ledger.ack(deletedDeviceKind, identifier, device.Data.ID)
	}
}

// findDevices records which created devices exist, and which deleted devices do not exist.
func (s *site) findDevices(ctx context.Context, f findings) error {
	for kind, reason := range map[string]string{deviceKind: "", deletedDeviceKind: "it still exists"} {
		for id := range s.ledger.sent(kind) {
			a := s.call(ctx, http.MethodGet, "/iot/devices/identifier/"+id, "")
			switch {
			case a.ok():
				f.see(kind, id, 1, reason)
			case !a.notFound():
				return s.read(a, nil)
			case kind == deletedDeviceKind:
				f.see(kind, id, 1, "")
			}
		}
	}
	return nil
}

// pages returns the records of all pages of a list.
func pages[T any](ctx context.Context, s *site, path string) (records []T, err error) {
	for page := 1; ; page++ {
		var list struct{ Data []T }
		if err := s.get(ctx, fmt.Sprintf("%s?per_page=500&page=%d", path, page), &list); err != nil || len(list.Data) == 0 {
			return records, err
		}
		records = append(records, list.Data...)
	}
}

// findJobs records the SIM jobs and whether they are completed and their callbacks arrived.
func (s *site) findJobs(ctx context.Context, f findings) error {
	jobs, err := pages[struct{ ID, Action, Status string }](ctx, s, "/v3/mno/job")
	for _, j := range jobs {
		if strings.HasSuffix(j.Action, "suspend_sim") {
			f.see(jobKind, j.ID, 1, s.jobFailure(j.Status, "job.completed "+j.ID))
		}
	}
	return err
}

// jobFailure returns the reason why a job is not done: it is not completed, or its callback has not
// arrived. It returns "" for a job that is done.
func (s *site) jobFailure(status, event string) string {
	switch {
	case status != "" && status != "completed":
		return "it is " + status
	case s.sink.times(event) == 0:
		return "its callback has not arrived"
	}
	return ""
}

// findClaims records the jobs of acknowledged claims.
func (s *site) findClaims(ctx context.Context, f findings) error {
	for id := range s.ledger.sent(claimKind) {
		var job struct{ Data struct{ Status string } }
		a := s.call(ctx, http.MethodGet, "/ledgers/jobs/"+id, "")
		if a.status == http.StatusNotFound {
			continue
		}
		if err := s.read(a, &job); err != nil {
			return err
		}
		f.see(claimKind, id, 1, s.jobFailure(job.Data.Status, "token.claimed "+id))
	}
	return nil
}

// verifyLedger ends the gateways and runs `penstock ledger verify`, which must find every
// acknowledged claim.
func (s *site) verifyLedger(ctx context.Context) {
	for _, g := range s.gateways {
		if code := g.end(syscall.SIGTERM); code != 0 {
			s.note(fmt.Sprintf("%s exited with code %d: %s", g.name, code, servers.OutputTail(g.cmd)))
		}
	}
	g := s.gateways[0]
	cmd := exec.CommandContext(ctx, g.binary, "ledger", "verify", "--config", g.config)
	cmd.Env = append(os.Environ(), g.env...)
	output, err := cmd.CombinedOutput()
	entries, claims := 0, 0
	if m := regexp.MustCompile(`chaos/assets: (\d+) entries match their signatures`).FindSubmatch(output); m != nil {
		entries, _ = strconv.Atoi(string(m[1]))
	}
	for _, item := range s.ledger.sent(claimKind) {
		if item.acked {
			claims++
		}
	}
	if err != nil || entries < 1+claims {
		s.note(fmt.Sprintf("the ledger has %d valid entries, want at least %d: %v: %s", entries, 1+claims, err, output))
	}
}

// await waits until ready returns true. label names the awaited result in the error.
func (s *site) await(ctx context.Context, label string, ready func() (bool, error)) error {
	var lastErr error
	err := servers.UntilEvery(ctx, 100*time.Millisecond, s.settings.settle, label, func() (ok bool) {
		ok, lastErr = ready()
		return ok
	})
	return errors.Join(err, lastErr)
}

// findUses records the SIM CDRs in a file that a job exports.
func (s *site) findUses(ctx context.Context, f findings) error {
	timeRange := fmt.Sprintf(`{"start_time":%q,"end_time":%q,"name":"chaos"}`, s.base.Add(-time.Hour).Format(time.RFC3339), s.base.Add(time.Hour).Format(time.RFC3339))
	var export struct{ Data struct{ ID string } }
	if err := s.read(s.call(ctx, http.MethodPost, "/v3/mno/job/cdr", timeRange), &export); err != nil {
		return err
	}
	if err := s.await(ctx, "the file of SIM CDRs", func() (bool, error) {
		var job struct{ Data struct{ Status string } }
		err := s.get(ctx, "/v3/mno/job/"+export.Data.ID+"/status", &job)
		return job.Data.Status == "completed", err
	}); err != nil {
		return err
	}
	a := s.call(ctx, http.MethodGet, "/v3/mno/job/"+export.Data.ID+"/cdr/stream", "")
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err := errors.Join(s.read(a, nil), err); err != nil {
		return err
	}
	for _, row := range rows[min(1, len(rows)):] { // without the header
		f.seeOnce(usageKind, row[0])
	}
	return nil
}
