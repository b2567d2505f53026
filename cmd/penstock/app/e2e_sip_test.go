package app

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// cdrFixture is what a switch posts.
func cdrFixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "decoders", "cdr", "testdata", name))
	must(t, err)
	return string(b)
}

// order has an archive made and returns its handle.
func (c caller) order(body string) string {
	c.g.t.Helper()
	var made struct{ Data struct{ Handle string } }
	a := c.post("/v2/sip/cdr/request", body)
	if a.status != 200 {
		c.g.t.Fatalf("%d %s", a.status, a.body)
	}
	a.into(c.g.t, &made)
	return made.Data.Handle
}

// archive waits for an archive and reads its rows by file, without the headers.
func (c caller) archive(handle string) map[string][]string {
	c.g.t.Helper()
	var body string
	eventually(c.g.t, "the archive is made", func() (any, bool) {
		a, err := c.try("GET", "/v2/sip/cdr/"+handle+"/download", "")
		body = a.body
		return a.status, err == nil && a.status == 200
	})
	z, err := zip.NewReader(bytes.NewReader([]byte(body)), int64(len(body)))
	must(c.g.t, err)
	files := make(map[string][]string)
	for _, f := range z.File {
		r, err := f.Open()
		must(c.g.t, err)
		rows, err := csv.NewReader(r).ReadAll()
		must(c.g.t, err)
		files[f.Name] = []string{}
		for _, row := range rows[1:] {
			files[f.Name] = append(files[f.Name], strings.Join(row, "|"))
		}
	}
	return files
}

const november = `{"from_date":"2026-11-01 00:00:00","to_date":"2026-11-30 23:59:59","single_file":true}`

func TestCallRecordsFromSwitchToArchive(t *testing.T) {
	t.Parallel()
	onEverySite(t, func(t *testing.T, s *site) {
		t.Parallel()
		g := start(t, s, fixture(t, "contract.yaml"))
		pbx, acme, box := g.as("acme-all-0123456"), g.as("").with("X-Auth-Token", "acme-all-0123456"), s.mailbox()
		g.admin().put("/admin/inventory", `{"accounts":[{"name":"globex","tokens":[{"token":"globex-token-0123456"}]}]}`)
		evil := `{"id":"=cmd()","start":"2026-11-21T00:00:00Z","from":"+447700900123","to":"@SUM(A1)"}`
		for range 2 { // switches repeat what they think was lost
			for _, body := range []string{
				cdrFixture(t, "freeswitch.json"), "cdr=" + url.QueryEscape(cdrFixture(t, "freeswitch.json")), cdrFixture(t, "asterisk.csv"),
				cdrFixture(t, "records.jsonl"), evil + "\n{}",
			} {
				pbx.with("Content-Type", "text/plain").post("/inbound/cdr/sip", body).mentions(t, 200, "records")
			}
		}
		g.settled()
		want := []string{
			"1795253655.41|2026-11-20 09:34:15|2026-11-20 09:34:20|2026-11-20 09:35:12|447700900123|447860000001|57|52|ANSWERED|carrier-a",
			"c1|2026-11-20 09:34:15|2026-11-20 09:34:20|2026-11-20 09:35:12|447700900123|447860000001|57|52|ANSWERED|carrier-a",
			"2|2026-11-20 09:34:15.25||2026-11-20 09:34:24|447700900124|sip:desk@example.com|8|0||",
			"447700900124",
			"'=cmd()|2026-11-21 00:00:00|||'+447700900123|'@SUM(A1)|0|0||",
			"2b6aa8f2-41c3-4f0f-b2fd-6d7b7f3f2a51|2026-11-21 09:34:15|2026-11-21 09:34:20|2026-11-21 09:35:12|'+447700900123|447860000001|57|52|NORMAL_CLEARING|carrier-a",
		}
		handle := acme.order(strings.Replace(november, "}", `,"email":"`+box+`"}`, 1))
		files := acme.archive(handle)
		got := files["cdr-20261101-20261130.csv"]
		if len(files) != 1 || len(got) != len(want) {
			t.Fatalf("%q", files)
		}
		slices.Sort(got)
		slices.Sort(want)
		for _, w := range want {
			if !slices.ContainsFunc(got, func(row string) bool { return row == w || strings.Contains(row, "|"+w+"|") }) {
				t.Errorf("no row %s in\n%s", w, strings.Join(got, "\n"))
			}
		}
		days := acme.archive(acme.order(strings.Replace(november, "true", "false", 1)))
		if names := slices.Sorted(maps.Keys(days)); !slices.Equal(names, []string{"cdr-20261120.csv", "cdr-20261121.csv"}) {
			t.Errorf("%q", names)
		}
		if set := g.events("kind=cdr&state=quarantined"); len(set) != 2 || !strings.Contains(set[0].Reason, "id: offset") {
			t.Errorf("%+v", set)
		}
		eventually(t, "the mail is out", func() (any, bool) {
			found := g.deliveries("kind=notice")
			return found, len(found) == 1 && (found[0].State == "simulated" || found[0].State == "delivered")
		})
		g.as("").with("X-Auth-Token", "globex-token-0123456").get("/v2/sip/cdr/"+handle+"/download").is(t, 404, "")
		acme.get("/v2/sip/trunk/source-ips").is(t, 200, `{"data":[{"source_ips":["192.0.2.1"]}]}`)
	})
}

// TestKillLosesNoCallRecords kills the gateway while records are posted and
// archives made: what was acknowledged is in the archive, once.
func TestKillLosesNoCallRecords(t *testing.T) {
	t.Parallel()
	seed := numberFrom(t, "PENSTOCK_TEST_SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("PENSTOCK_TEST_SEED=%d", seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	g := newGateway(t, &site{name: "embedded"}, fixture(t, "contract.yaml"))
	g.spawn()
	pbx, acme := g.as("acme-all-0123456"), g.as("").with("X-Auth-Token", "acme-all-0123456")
	acknowledged, handle := make(map[string]bool), ""
	for n := range 4 {
		stop := time.After(time.Duration(100+random.IntN(400)) * time.Millisecond)
		killed := make(chan struct{})
		go func() { <-stop; g.kill(); close(killed) }()
		for i := 0; ; i++ {
			id := fmt.Sprintf("k%d-%d", n, i)
			a, err := pbx.try("POST", "/inbound/cdr/sip", `{"id":"`+id+`","start":"2026-11-20T09:34:15Z","from":"1","to":"2"}`)
			if err != nil {
				break
			}
			if a.status == 200 {
				acknowledged[id] = true
			}
			if i == 5 {
				if a, err := acme.try("POST", "/v2/sip/cdr/request", november); err == nil && a.status == 200 {
					_, rest, _ := strings.Cut(a.body, `"handle":"`)
					handle, _, _ = strings.Cut(rest, `"`)
				}
			}
		}
		<-killed
		g.spawn()
	}
	g.settled()
	if handle == "" || len(acknowledged) < 20 {
		t.Fatalf("%d records, handle %q", len(acknowledged), handle)
	}
	acme.archive(handle) // the job that was killed ends
	found := make(map[string]int)
	for _, rows := range acme.archive(acme.order(november)) {
		for _, row := range rows {
			id, _, _ := strings.Cut(row, "|")
			found[id]++
		}
	}
	for id := range acknowledged {
		if found[id] != 1 {
			t.Errorf("%s is there %d times", id, found[id])
		}
	}
	if code := g.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
