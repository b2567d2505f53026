package sims

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// exportSIMs is the number of SIMs with records in an export.
const exportSIMs = 100

// exportRow returns the i-th posted record as a row of the file. Records start at intervals of half a
// second, so that five million records fit into 31 days.
func exportRow(i int) string {
	kind := [...]string{"data", "sms", "voice"}[i%3]
	startTime := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * 500 * time.Millisecond)
	return fmt.Sprintf("r-%08x-%d,%s,%s,%s,%d,%d", uint32(i)*2654435761, i, exportSIM(i), startTime.Format("2006-01-02T15:04:05.999999Z07:00"), kind, i*7919%1_000_003, i%3600)
}

func exportSIM(i int) string { return fmt.Sprintf("89445%013d", i%exportSIMs) }

// TestLargeExportNeedsLittleMemory posts records, restarts the gateway, requests a file of all records
// and compares the file row by row. It limits the growth of the process's memory.
// PENSTOCK_TEST_CDRS=5000000 is the full run.
func TestLargeExportNeedsLittleMemory(t *testing.T) {
	t.Parallel()
	count := e2e.Rounds(t, "PENSTOCK_TEST_CDRS", 40_000, 1_000_000)
	var sims strings.Builder
	for i := range exportSIMs {
		fmt.Fprintf(&sims, `{iccid: %q},`, exportSIM(i))
	}
	g := e2e.NewGateway(t, e2e.Embedded(), `accounts: [{name: acme, tokens: [{token: acme-all-0123456, scopes: [cellular, carrier]}], sims: [`+sims.String()+`]}]`)
	g.Spawn()
	startedAt := time.Now()
	postUsage(g, count)
	awaitRecords(g, 30*time.Minute)
	t.Logf("%d records are posted and stored after %s", count, time.Since(startedAt).Round(time.Second))
	g.TerminateCleanly()
	file := relaytest.Must(os.Stat(filepath.Join(g.DataDir(), "penstock.db")))(t)
	t.Logf("the database has %d MB", file.Size()/1_000_000)
	g.Spawn()
	// 5 resets the peak of the resident memory, which the start has set; see proc(5).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", g.Process.Process.Pid), []byte("5"), 0); err != nil {
		t.Logf("cannot reset the peak: %v", err)
	}
	baseline := g.Memory("VmRSS")
	acme := e2e.CustomerOf(g)
	startedAt = time.Now()
	id := acme.CompleteJob("/v3/mno/job/cdr", `{"start_time":"2026-10-01T00:00:00Z","end_time":"2026-11-01T00:00:00Z"}`)
	jobTime := time.Since(startedAt)
	compareExport(g, id, count)
	growth := g.Memory("VmHWM") - baseline
	t.Logf("%d rows: job completed after %s, file read after %s; %d KiB before, %d KiB more at the peak", count, jobTime.Round(time.Millisecond), time.Since(startedAt).Round(time.Millisecond), baseline, growth)
	if growth >= 100<<10 { // half of the limit is for the race detector; five million rows are 500 MB
		t.Errorf("the memory grew by %d KiB, want less than 100 MiB", growth)
	}
	startedAt = time.Now()
	id = acme.CompleteJob("/v3/mno/job/usage", `{"start_time":"2026-10-01T00:00:00Z","end_time":"2026-11-01T00:00:00Z"}`)
	t.Logf("usage report completed after %s; %d KiB at the peak", time.Since(startedAt).Round(time.Millisecond), g.Memory("VmHWM"))
	compareReport(acme, id, count)
	g.TerminateCleanly()
}

// postUsage posts records in CSV, 20,000 in each request.
func postUsage(g *e2e.Gateway, count int) {
	g.T.Helper()
	const batchSize = 20_000
	mno := g.WithToken("acme-all-0123456").With("Content-Type", "text/csv")
	for start := 0; start < count; start += batchSize {
		var b strings.Builder
		b.WriteString("id,iccid,start_time,type,bytes,duration\n")
		n := min(batchSize, count-start)
		for i := range n {
			b.WriteString(exportRow(start+i) + "\n")
		}
		mno.Post("/inbound/cdr/sim", b.String()).Mentions(g.T, 200, fmt.Sprintf(`"records":%d,"refused":0`, n))
	}
}

// awaitRecords waits until every record is processed. It fails the test after maxWait.
func awaitRecords(g *e2e.Gateway, maxWait time.Duration) {
	g.T.Helper()
	for deadline := time.Now().Add(maxWait); ; <-time.After(100 * time.Millisecond) {
		lag := e2e.Metrics(g.T, g.WithToken("").Get("/metrics").Body)[`penstock_entries_pending{kind="cdr"}`]
		if lag == 0 {
			return
		}
		if time.Now().After(deadline) {
			g.T.Fatalf("unprocessed posts = %v, want 0", lag)
		}
	}
}

// compareExport reads the file of a job as a stream and compares its rows with the posted
// records.
func compareExport(g *e2e.Gateway, id string, count int) {
	g.T.Helper()
	req := relaytest.Must(http.NewRequestWithContext(g.T.Context(), http.MethodGet, g.URL()+"/v3/mno/job/"+id+"/cdr/stream", nil))(g.T)
	req.Header.Set("X-Auth-Token", "acme-all-0123456")
	resp := relaytest.Must(http.DefaultClient.Do(req))(g.T)
	defer func() { _ = resp.Body.Close() }()
	if h := resp.Header; resp.StatusCode != 200 || h.Get("Content-Type") != "text/csv" || h.Get("Content-Disposition") != `attachment; filename="cdr-20261001-20261101.csv"` {
		g.T.Fatalf("status = %d, headers = %v, want 200 and a CSV attachment", resp.StatusCode, h)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Scan()
	if lines.Text() != "id,iccid,start_time,type,bytes,duration" {
		g.T.Fatalf("first line = %q, want the names of the columns", lines.Text())
	}
	rows := 0
	for ; lines.Scan(); rows++ {
		if want := exportRow(rows); lines.Text() != want {
			g.T.Fatalf("row %d = %s\nwant %s", rows, lines.Text(), want)
		}
	}
	if lines.Err() != nil || rows != count {
		g.T.Errorf("rows = %d, want %d: %v", rows, count, lines.Err())
	}
}

// compareReport compares a usage report with the posted records.
func compareReport(c e2e.Client, id string, count int) {
	c.Gateway.T.Helper()
	want := map[string]int{}
	for i := range count {
		want[exportSIM(i)] += i * 7919 % 1_000_003
	}
	relaytest.Equal(c.Gateway.T, "the report", e2e.UsageBySIM(c.Gateway.T, c.Get("/v3/mno/job/"+id+"/usage?per_page=500")), want)
}
