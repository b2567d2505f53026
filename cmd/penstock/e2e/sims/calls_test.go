package sims

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// cdrFixture returns a body of call records as a switch posts it.
func cdrFixture(t *testing.T, name string) string {
	t.Helper()
	return e2e.RepositoryFile(t, "decoders/cdr/testdata/"+name)
}

func TestCallRecordsFromSwitchToArchive(t *testing.T) {
	t.Parallel()
	e2e.OnEmbeddedSite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		g := e2e.Start(t, s, e2e.Fixture(t, "contract.yaml"))
		carrierClient, acme, mailbox := g.WithToken("acme-all-0123456"), e2e.CustomerOf(g), s.Mailbox()
		g.Admin().Put("/admin/inventory", `{"accounts":[{"name":"globex","tokens":[{"token":"globex-token-0123456"}]}]}`)
		formulaRecord := `{"id":"=cmd()","start":"2026-11-21T00:00:00Z","from":"+447700900123","to":"@SUM(A1)"}`
		for range 2 { // a switch repeats a post after a lost answer
			for _, body := range []string{
				cdrFixture(t, "freeswitch.json"), "cdr=" + url.QueryEscape(cdrFixture(t, "freeswitch.json")), cdrFixture(t, "asterisk.csv"),
				cdrFixture(t, "records.jsonl"), formulaRecord + "\n{}",
			} {
				carrierClient.With("Content-Type", "text/plain").Post("/inbound/cdr/sip", body).Mentions(t, 200, "records")
			}
		}
		g.AwaitProcessed()
		want := []string{
			"1795253655.41|2026-11-20 09:34:15|2026-11-20 09:34:20|2026-11-20 09:35:12|447700900123|447860000001|57|52|ANSWERED|carrier-a",
			"c1|2026-11-20 09:34:15|2026-11-20 09:34:20|2026-11-20 09:35:12|447700900123|447860000001|57|52|ANSWERED|carrier-a",
			"2|2026-11-20 09:34:15.25||2026-11-20 09:34:24|447700900124|sip:desk@example.com|8|0||",
			"447700900124",
			"'=cmd()|2026-11-21 00:00:00|||'+447700900123|'@SUM(A1)|0|0||",
			"2b6aa8f2-41c3-4f0f-b2fd-6d7b7f3f2a51|2026-11-21 09:34:15|2026-11-21 09:34:20|2026-11-21 09:35:12|'+447700900123|447860000001|57|52|NORMAL_CLEARING|carrier-a",
		}
		handle := acme.RequestArchive(strings.Replace(e2e.ArchiveOfNovember, "}", `,"email":"`+mailbox+`"}`, 1))
		files := acme.DownloadArchive(handle)
		got := files["cdr-20261101-20261130.csv"]
		if len(files) != 1 || len(got) != len(want) {
			t.Fatalf("files = %q, want one with %d rows", files, len(want))
		}
		slices.Sort(got)
		slices.Sort(want)
		for _, w := range want {
			if !slices.ContainsFunc(got, func(row string) bool { return row == w || strings.Contains(row, "|"+w+"|") }) {
				t.Errorf("row %s is missing in\n%s", w, strings.Join(got, "\n"))
			}
		}
		days := acme.DownloadArchive(acme.RequestArchive(strings.Replace(e2e.ArchiveOfNovember, "true", "false", 1)))
		relaytest.Equal(t, "the files of the days", slices.Sorted(maps.Keys(days)), []string{"cdr-20261120.csv", "cdr-20261121.csv"})
		var reasons []string
		for _, event := range g.Events("kind=cdr&state=quarantined") {
			reasons = append(reasons, event.Reason)
		}
		if len(reasons) != 2 || !strings.Contains(reasons[0], "id: offset") {
			t.Errorf("reasons of quarantined events = %q, want 2", reasons)
		}
		relaytest.Eventually(t, "the mail is sent", func() (any, bool) {
			found := g.Deliveries("kind=notice")
			return found, len(found) == 1 && (found[0].State == "simulated" || found[0].State == "delivered")
		})
		g.XAuth("globex-token-0123456").Get("/v2/sip/cdr/"+handle+"/download").Expect(t, 404, "")
		acme.Get("/v2/sip/trunk/source-ips").Expect(t, 200, `{"data":[{"source_ips":["192.0.2.1"]}]}`)
	})
}

// TestKillLosesNoCallRecords kills the gateway while records are posted and archives are
// requested. Every acknowledged record is in the archive once.
func TestKillLosesNoCallRecords(t *testing.T) {
	t.Parallel()
	random := e2e.Random(t)
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	g.Spawn()
	carrierClient, acme := g.WithToken("acme-all-0123456"), e2e.CustomerOf(g)
	acknowledged, handle := make(map[string]bool), ""
	for n := range e2e.Rounds(t, "PENSTOCK_TEST_KILLS", 2, 20) {
		callUntilKilled(g, random, func(i int) error {
			id := fmt.Sprintf("k%d-%d", n, i)
			resp, err := carrierClient.Try("POST", "/inbound/cdr/sip", `{"id":"`+id+`","start":"2026-11-20T09:34:15Z","from":"1","to":"2"}`)
			if err == nil && resp.Status == 200 {
				acknowledged[id] = true
			}
			if i == 5 {
				if resp, err := acme.Try("POST", "/v2/sip/cdr/request", e2e.ArchiveOfNovember); err == nil && resp.Status == 200 {
					_, remaining, _ := strings.Cut(resp.Body, `"handle":"`)
					handle, _, _ = strings.Cut(remaining, `"`)
				}
			}
			return err
		})
	}
	g.AwaitProcessed()
	if handle == "" || len(acknowledged) == 0 {
		t.Fatalf("acknowledged records = %d, handle = %q, want some of both", len(acknowledged), handle)
	}
	acme.DownloadArchive(handle) // completes the job that the kill interrupted
	counts := make(map[string]int)
	for _, rows := range acme.DownloadArchive(acme.RequestArchive(e2e.ArchiveOfNovember)) {
		for _, row := range rows {
			id, _, _ := strings.Cut(row, "|")
			counts[id]++
		}
	}
	for id := range acknowledged {
		if counts[id] != 1 {
			t.Errorf("rows of %s in the archive = %d, want 1", id, counts[id])
		}
	}
	g.TerminateCleanly()
}
