package failures

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	registry "github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestJournalOfALostGatewayIsRecovered kills one of two gateways after it has accepted entries of every
// kind that it could not process. The gateway does not return: a recovery processes the journal from
// its disk while the other gateway runs.
func TestJournalOfALostGatewayIsRecovered(t *testing.T) {
	t.Parallel()
	r := newRecoveryFixture(t)
	r.expectRefusal(t, "while the gateway runs", r.lost.DataDir(), "the gateway runs", "directory is in use by process")
	r.expectRefusal(t, "while it sends heartbeats from another disk", r.copyJournal(t), "sent a heartbeat", "stop it, or wait")
	r.expectRefusal(t, "of another directory", t.TempDir(), "is not the data directory of a gateway")

	r.accept(t)
	r.awaitAway(t)
	r.interruptRecovery(t)
	r.awaitAway(t)
	output := r.runRecovery(t)
	output.Mentions(t, "uplink", "sms", "receipt", "cdr", "no entries remain in "+filepath.Join(r.lost.DataDir(), "journal"), "DELETE /admin/gateways/")
	r.check(t)

	r.runRecovery(t).Mentions(t, "processed uplink 0, sms 0, receipt 0, cdr 0\n")
	r.check(t)

	r.checkDamagedJournal(t)
	r.check(t)
	r.survivor.TerminateCleanly()
}

// recoveryFixture has two gateways on the same back ends: lost will be killed, survivor continues.
type recoveryFixture struct {
	site           *e2e.Site
	lost, survivor *e2e.Gateway
	load           *e2e.Load
	arrivals       *e2e.Arrivals
	partner        *e2e.Sink // a carrier
	sink           *e2e.Sink // receives delivery reports
	usage          int       // bytes of e2e.SIMA
	calls          int
}

func newRecoveryFixture(t *testing.T) *recoveryFixture {
	t.Helper()
	s := e2e.OwnServers(t)
	arrivals, sinkURL := e2e.NewMessageCounter(t)
	inventory := e2e.Fixture(t, "load.yaml", "SINK", sinkURL, "    decoders:\n", fmt.Sprintf("    credit: 10\n    sims: [{iccid: %q, current_state: active}]\n    decoders:\n", e2e.SIMA))
	r := &recoveryFixture{site: s, arrivals: arrivals, partner: e2e.NewSink(t, nil), sink: e2e.NewSink(t, nil)}
	c := e2e.NewCluster(t, s, inventory)
	r.lost, r.survivor = c.Gateways[0], c.Gateways[1]
	for _, g := range []*e2e.Gateway{r.lost, r.survivor} {
		g.Configure("carriers:\n  - {type: http, name: partner, url: '" + r.partner.URL + "/sms', token: secret}\n")
		g.Spawn()
	}
	r.load = e2e.NewLoad(r.lost)
	return r
}

// accept posts entries to the gateway lost, which cannot process them because the database is down, and
// kills the gateway.
func (r *recoveryFixture) accept(t *testing.T) {
	t.Helper()
	e2e.CustomerOf(r.lost).SendMessages(e2e.SendBody(t, r.sink.URL, nil, "447700900123"))
	var m struct {
		ReportURL string `json:"report_url"`
	}
	relaytest.NoError(t, json.Unmarshal([]byte(r.partner.Await(t, "/sms", 1).Body), &m))
	report, err := url.Parse(m.ReportURL)
	relaytest.NoError(t, err)
	e2e.AwaitReports(t, r.sink, "447700900123:8") // the carrier's answer is recorded
	acme := e2e.CarrierOf(r.lost)
	acme.Post("/inbound/cdr/sim", e2e.UsageRecord("known", e2e.SIMA, 1)).Mentions(t, 200) // the gateway accepts the token without the database from now on
	r.lost.AwaitProcessed()
	r.usage = 1

	r.site.Postgres.Kill()
	for n := range 150 {
		r.load.Frame(0, n)
		r.load.Message(0, n)
		id := fmt.Sprint("c", n)
		acme.Post("/inbound/cdr/sim", e2e.UsageRecord(id, e2e.SIMA, 10)).Mentions(t, 200)
		acme.Post("/inbound/cdr/sip", e2e.CallRecord(id)).Mentions(t, 200)
		r.usage, r.calls = r.usage+10, r.calls+1
	}
	r.lost.WithToken("").Post(report.RequestURI(), `{"state":"DELIVRD"}`).Mentions(t, 200)
	if len(r.load.Refused) > 0 {
		t.Errorf("posts were refused: %v", r.load.Refused)
	}
	r.lost.Kill()
	r.site.Postgres.Start()
	r.load.G = r.survivor
	r.survivor.AwaitReady()
}

// recoverDir runs a recovery of a directory with the settings of survivor, and returns its output and
// exit code.
func (r *recoveryFixture) recoverDir(dir string) (e2e.Output, int) {
	output, err := r.survivor.Command("recover", "--journal", dir, "--config", r.survivor.ConfigFile).CombinedOutput()
	return e2e.Output(output), e2e.ExitCode(err)
}

func (r *recoveryFixture) expectRefusal(t *testing.T, name, dir string, words ...string) {
	t.Helper()
	output, code := r.recoverDir(dir)
	if code != 1 {
		t.Errorf("%s: exit code %d, want 1", name, code)
	}
	output.Mentions(t, words...)
}

// copyJournal copies the journal and the node file of the lost gateway to a new directory, and returns
// the directory.
func (r *recoveryFixture) copyJournal(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	relaytest.NoError(t, os.CopyFS(filepath.Join(dir, "journal"), os.DirFS(filepath.Join(r.lost.DataDir(), "journal"))))
	node, err := os.ReadFile(filepath.Join(r.lost.DataDir(), e2e.NodeFile))
	relaytest.NoError(t, err)
	relaytest.NoError(t, os.WriteFile(filepath.Join(dir, e2e.NodeFile), node, 0o600))
	return dir
}

// awaitAway waits until the lost gateway counts as away.
func (r *recoveryFixture) awaitAway(t *testing.T) {
	t.Helper()
	relaytest.Eventually(t, "the lost gateway is away", func() (any, bool) {
		seenAt := r.registered(t).SeenAt
		return seenAt, time.Since(seenAt) > registry.AwayAfter
	})
}

// registeredGateway is a gateway as the admin API lists it.
type registeredGateway struct {
	URL       string
	StartedAt time.Time `json:"started_at"`
	SeenAt    time.Time `json:"seen_at"`
}

// registered returns the lost gateway as survivor lists it.
func (r *recoveryFixture) registered(t *testing.T) registeredGateway {
	t.Helper()
	var list struct{ Data []registeredGateway }
	r.survivor.Admin().Get("/admin/gateways").Decode(t, &list)
	for _, g := range list.Data {
		if g.URL == r.lost.URL() {
			return g
		}
	}
	t.Fatalf("%s is not registered: %+v", r.lost.URL(), list.Data)
	return registeredGateway{}
}

// interruptRecovery kills a recovery when it prints its progress.
func (r *recoveryFixture) interruptRecovery(t *testing.T) {
	t.Helper()
	cmd := r.survivor.Command("recover", "--journal", r.lost.DataDir(), "--config", r.survivor.ConfigFile)
	var reason e2e.Transcript
	cmd.Stderr = &reason
	stdout, err := cmd.StdoutPipe()
	relaytest.NoError(t, err)
	relaytest.NoError(t, cmd.Start())
	prefix := make([]byte, len("uplink"))
	n, _ := io.ReadFull(stdout, prefix)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if string(prefix[:n]) != "uplink" {
		t.Fatalf("output of the recovery begins with %q, want \"uplink\": %s", prefix[:n], reason.String())
	}
}

// runRecovery recovers the journal of the lost gateway and returns the output.
func (r *recoveryFixture) runRecovery(t *testing.T) e2e.Output {
	t.Helper()
	output, code := r.recoverDir(r.lost.DataDir())
	if code != 0 {
		t.Fatalf("exit code = %d, want 0:\n%s", code, output)
	}
	return output
}

// check compares the stored records and the deliveries with the accepted entries.
func (r *recoveryFixture) check(t *testing.T) {
	t.Helper()
	r.load.Check(t, r.arrivals)
	if len(r.arrivals.ByItem) != len(r.load.Texts) {
		t.Errorf("arrived messages = %d, want %d", len(r.arrivals.ByItem), len(r.load.Texts))
	}
	e2e.AwaitReports(t, r.sink, "447700900123:8", "447700900123:1")
	acme := e2e.CustomerOf(r.survivor)
	id := acme.CompleteJob("/v3/mno/job/usage", e2e.CurrentPeriod())
	relaytest.Equal(t, "the bytes of the SIM", e2e.UsageBySIM(t, acme.Get("/v3/mno/job/"+id+"/usage"))[e2e.SIMA], r.usage)
	rows := acme.DownloadArchive(acme.RequestArchive(e2e.ArchiveOfNovember))["cdr-20261101-20261130.csv"]
	relaytest.Equal(t, "the number of calls", len(rows), r.calls)
}

// checkDamagedJournal starts the lost gateway again, posts three messages while the database is down,
// kills the gateway and damages one message in its journal. The recovery processes the other two
// messages.
func (r *recoveryFixture) checkDamagedJournal(t *testing.T) {
	t.Helper()
	r.lost.Spawn()
	r.load.G = r.lost
	relaytest.Eventually(t, "the gateway has sent two heartbeats, so that it has read the tokens", func() (any, bool) {
		g := r.registered(t)
		return g, g.SeenAt.Sub(g.StartedAt) > registry.HeartbeatEvery
	})
	r.load.Message(1, 1) // the gateway accepts the token without the database from now on
	r.lost.AwaitProcessed()
	r.site.Postgres.Kill()
	r.load.Message(2, 1)
	damagedText := "message 1 of 3"
	r.load.Message(3, 1)
	r.load.Message(4, 1)
	if len(r.load.Refused) > 0 {
		t.Fatalf("posts were refused: %v", r.load.Refused)
	}
	r.lost.Kill()
	segment, offset := flipBit(t, filepath.Join(r.lost.DataDir(), "journal", "sms"), damagedText)
	delete(r.load.Texts, damagedText)
	r.site.Postgres.Start()
	r.load.G = r.survivor
	r.awaitAway(t)
	output := r.runRecovery(t)
	output.Mentions(t, segment+" at offset ", "bytes cannot be read", "sms 2,")
	match := regexp.MustCompile(`at offset (\d+): (\d+) bytes`).FindStringSubmatch(string(output))
	var start, length int
	if len(match) == 3 {
		_, err := fmt.Sscan(match[1]+" "+match[2], &start, &length)
		relaytest.NoError(t, err)
	}
	if offset < start || offset >= start+length {
		t.Errorf("byte %d of %s is damaged, want it among the skipped bytes:\n%s", offset, segment, output)
	}
}

// flipBit changes a bit of a text in the segment that contains the text, and returns the path of the
// segment and the offset.
func flipBit(t *testing.T, dir, text string) (segment string, offset int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	relaytest.NoError(t, err)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if index := bytes.Index(raw, []byte(text)); index >= 0 {
			raw[index] ^= 1
			relaytest.NoError(t, os.WriteFile(path, raw, 0o600))
			return path, index
		}
	}
	t.Fatalf("no segment in %s contains %q", dir, text)
	return "", 0
}
