package app

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// exportSIMs is how many SIMs the records of an export are of.
const exportSIMs = 100

// exportRow is the i-th record that is posted, as the file must have it. They are
// half a second apart, so that five million fit into 31 days.
func exportRow(i int) string {
	kind := [...]string{"data", "sms", "voice"}[i%3]
	at := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * 500 * time.Millisecond)
	return fmt.Sprintf("r-%08x-%d,%s,%s,%s,%d,%d", uint32(i)*2654435761, i, exportSIM(i), at.Format("2006-01-02T15:04:05.999999Z07:00"), kind, i*7919%1_000_003, i%3600)
}

func exportSIM(i int) string { return fmt.Sprintf("89445%013d", i%exportSIMs) }

// TestAnExportOfMillionsTakesNoMemory posts records, restarts the gateway, has a
// file made of them all and compares it row by row, while it watches what the
// process takes. PENSTOCK_TEST_CDRS=5000000 is the full run.
func TestAnExportOfMillionsTakesNoMemory(t *testing.T) {
	t.Parallel()
	count := numberFrom(t, "PENSTOCK_TEST_CDRS", 40_000)
	var sims strings.Builder
	for i := range exportSIMs {
		fmt.Fprintf(&sims, `{iccid: %q},`, exportSIM(i))
	}
	g := newGateway(t, &site{name: "embedded"}, `accounts: [{name: acme, tokens: [{token: acme-all-0123456, scopes: [cellular, carrier]}], sims: [`+sims.String()+`]}]`)
	g.spawn()
	begun := time.Now()
	g.postUses(count)
	g.counted(30 * time.Minute)
	t.Logf("%d records are posted and kept after %s", count, time.Since(begun).Round(time.Second))
	if code := g.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if file, err := os.Stat(filepath.Join(g.data(), "usage", "usage.db")); err == nil {
		t.Logf("they take %d MB", file.Size()/1_000_000)
	}
	g.spawn()
	// 5 forgets the peak so far (proc(5)), which is that of the start.
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", g.child.Process.Pid), []byte("5"), 0); err != nil {
		t.Logf("the peak is that since the start: %v", err)
	}
	before := g.memory("VmRSS")
	acme := g.as("").with("X-Auth-Token", "acme-all-0123456")
	begun = time.Now()
	id := acme.ordered("/v3/mno/job/cdr", `{"start_time":"2026-10-01T00:00:00Z","end_time":"2026-11-01T00:00:00Z"}`)
	acme.finished(id, "completed")
	made := time.Since(begun)
	g.compareExport(id, count)
	rise := g.memory("VmHWM") - before
	t.Logf("%d rows: made in %s, read after %s; %d KiB before, %d KiB more at the peak", count, made.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond), before, rise)
	if rise >= 100<<10 { // under the race detector the heap alone may grow by half of that; five million rows are 500 MB
		t.Errorf("the process took %d KiB more", rise)
	}
	begun = time.Now()
	id = acme.ordered("/v3/mno/job/usage", `{"start_time":"2026-10-01T00:00:00Z","end_time":"2026-11-01T00:00:00Z"}`)
	acme.finished(id, "completed")
	t.Logf("the usage report is made in %s; %d KiB at the peak", time.Since(begun).Round(time.Millisecond), g.memory("VmHWM"))
	acme.compareReport(id, count)
	if code := g.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// postUses posts records as an operator does, 20,000 at a time, in CSV.
func (g *gateway) postUses(count int) {
	g.t.Helper()
	const each = 20_000
	mno := g.as("acme-all-0123456").with("Content-Type", "text/csv")
	for from := 0; from < count; from += each {
		var b strings.Builder
		b.WriteString("id,iccid,start_time,type,bytes,duration\n")
		n := min(each, count-from)
		for i := range n {
			b.WriteString(exportRow(from+i) + "\n")
		}
		mno.post("/inbound/cdr/sim", b.String()).mentions(g.t, 200, fmt.Sprintf(`"records":%d,"refused":0`, n))
	}
}

// counted waits until every record is kept, for so long at most.
func (g *gateway) counted(most time.Duration) {
	g.t.Helper()
	for until := time.Now().Add(most); ; <-time.After(100 * time.Millisecond) {
		lag := metrics(g.t, g.as("").get("/metrics").body)[`penstock_lag{kind="cdr"}`]
		if lag == 0 {
			return
		}
		if time.Now().After(until) {
			g.t.Fatalf("%v posts are not processed", lag)
		}
	}
}

// ordered asks for a job and returns its id.
func (c caller) ordered(path, body string) string {
	c.g.t.Helper()
	var made struct{ Data struct{ ID string } }
	c.post(path, body).into(c.g.t, &made)
	return made.Data.ID
}

// finished waits until a job has ended, and says how it must.
func (c caller) finished(id, status string) {
	c.g.t.Helper()
	until := time.Now().Add(10 * time.Minute)
	for {
		var job struct{ Data struct{ Status string } }
		c.get("/v3/mno/job/"+id+"/status").into(c.g.t, &job)
		if s := job.Data.Status; s == status {
			return
		} else if s == "completed" || s == "failed" || time.Now().After(until) {
			c.g.t.Fatalf("job %s is %s, want %s", id, s, status)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// compareExport reads the file of a job piece by piece and compares its rows with
// what was posted.
func (g *gateway) compareExport(id string, count int) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, g.url()+"/v3/mno/job/"+id+"/cdr/stream", nil)
	must(g.t, err)
	req.Header.Set("X-Auth-Token", "acme-all-0123456")
	resp, err := (&http.Client{}).Do(req)
	must(g.t, err)
	defer func() { _ = resp.Body.Close() }()
	if h := resp.Header; resp.StatusCode != 200 || h.Get("Content-Type") != "text/csv" || h.Get("Content-Disposition") != `attachment; filename="cdr-20261001-20261101.csv"` {
		g.t.Fatalf("%d %v", resp.StatusCode, h)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Scan()
	if lines.Text() != "id,iccid,start_time,type,bytes,duration" {
		g.t.Fatalf("the file begins with %q", lines.Text())
	}
	rows := 0
	for ; lines.Scan(); rows++ {
		if want := exportRow(rows); lines.Text() != want {
			g.t.Fatalf("row %d is %s\nwant %s", rows, lines.Text(), want)
		}
	}
	if lines.Err() != nil || rows != count {
		g.t.Errorf("the file has %d rows, want %d: %v", rows, count, lines.Err())
	}
}

// compareReport adds up a usage report.
func (c caller) compareReport(id string, count int) {
	c.g.t.Helper()
	want := map[string]int{}
	for i := range count {
		want[exportSIM(i)] += i * 7919 % 1_000_003
	}
	var report struct {
		Data []struct {
			ICCID string
			Usage int
		}
	}
	c.get("/v3/mno/job/"+id+"/usage?per_page=500").into(c.g.t, &report)
	if len(report.Data) != len(want) {
		c.g.t.Errorf("the report has %d rows, want %d", len(report.Data), len(want))
	}
	for _, row := range report.Data {
		if want[row.ICCID] != row.Usage {
			c.g.t.Errorf("%s used %d, want %d", row.ICCID, row.Usage, want[row.ICCID])
		}
	}
}

// memory reads a figure of the process, in KiB.
func (g *gateway) memory(name string) int {
	g.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.child.Process.Pid))
	must(g.t, err)
	m := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB$`).FindSubmatch(bytes.TrimSpace(status))
	if m == nil {
		g.t.Fatalf("no %s in\n%s", name, status)
	}
	n, err := strconv.Atoi(string(m[1]))
	must(g.t, err)
	return n
}
