package failures

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// damageCase is a way to damage a file.
type damageCase func(t *testing.T, path string)

// The ways that a file is damaged while the gateway is stopped.
var damagings = map[string]damageCase{
	"bits flipped": func(t *testing.T, path string) {
		rewriteFile(t, path, func(b []byte) []byte {
			for at := len(b) / 2 &^ 4095; at < len(b); at += 4096 { // the head of every page of a database
				b[at] ^= 1
			}
			return b
		})
	},
	"cut":     func(t *testing.T, path string) { rewriteFile(t, path, func(b []byte) []byte { return b[:len(b)/2] }) },
	"empty":   func(t *testing.T, path string) { rewriteFile(t, path, func([]byte) []byte { return nil }) },
	"deleted": func(t *testing.T, path string) { relaytest.NoError(t, os.Remove(path)) },
}

func rewriteFile(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	relaytest.NoError(t, err)
	relaytest.NoError(t, os.WriteFile(path, change(b), 0o600))
}

// damageNotice is how damage is noticed: where, and some words of it.
type damageNotice struct{ where, words string }

// Where damage is noticed.
const (
	atStart  = "the gateway does not start"
	inReadyz = "/readyz is 503"
	inLog    = "the log has a warning or an error"
	nowhere  = "the gateway works, and nothing is lost"
)

// damageNotices are the files of a data directory by pattern, and how each way to damage
// them is noticed.
var damageNotices = map[string]map[string]damageNotice{
	db.File: {
		"bits flipped": {atStart, "penstock.db: the database file is damaged"}, "cut": {atStart, "penstock.db: the database file is damaged"},
		"empty": {atStart, "penstock restore"}, "deleted": {atStart, "penstock restore"},
	},
	"readings/readings.db": {
		"bits flipped": {atStart, "readings.db: the database file is damaged"}, "cut": {atStart, "readings.db: the database file is damaged"},
		"empty": {inLog, "the journal is processed again"}, "deleted": {inLog, "the journal is processed again"},
	},
	"*.db-commits": { // what the last transactions are about is processed again
		"bits flipped": {inLog, "the file with their number is missing or damaged"}, "cut": {inLog, "the file with their number is missing or damaged"},
		"empty": {inLog, "the file with their number is missing or damaged"}, "deleted": {inLog, "the file with their number is missing or damaged"},
	},
	"journal/*/*.segment": {
		"bits flipped": {inLog, "journal: damaged range skipped"}, "cut": {inLog, "journal: damaged range skipped"},
		"empty": {inLog, "journal: damaged range skipped"}, "deleted": {inLog, "journal: damaged range skipped"},
	},
	"journal/*/*.checkpoint": { // what is behind it is processed again
		"bits flipped": {nowhere, ""}, "cut": {nowhere, ""}, "empty": {inLog, "checkpoint unreadable"}, "deleted": {nowhere, ""},
	},
	e2e.LedgerKeyFile: {
		"bits flipped": {inReadyz, "another master key"}, "cut": {atStart, "ledger-key is damaged: restore it"},
		"empty": {atStart, "ledger-key is empty: restore it"}, "deleted": {inReadyz, "another master key"},
	},
	e2e.HeadsFile: {
		"bits flipped": {atStart, "ledger-heads: line 1"}, "cut": {nowhere, ""}, "empty": {nowhere, ""}, "deleted": {nowhere, ""}, // also sealed in the database
	},
	e2e.NodeFile: {
		"bits flipped": {atStart, "was written by the gateway"}, "cut": {atStart, "was written by the gateway"},
		"empty": {atStart, "was written by the gateway"}, "deleted": {atStart, "was written by the gateway"},
	},
	e2e.DatabaseFile: {
		"bits flipped": {atStart, "database is damaged"}, "cut": {atStart, "database is damaged"},
		"empty": {atStart, "database is damaged"}, "deleted": {nowhere, ""}, // and is written again
	},
	e2e.TrafficFile: { // charts only
		"bits flipped": {inLog, "minutes are missing"}, "cut": {inLog, "begin anew"}, "empty": {nowhere, ""}, "deleted": {nowhere, ""},
	},
	"mail/*/*": { // written for people, and never read
		"bits flipped": {nowhere, ""}, "cut": {nowhere, ""}, "empty": {nowhere, ""}, "deleted": {nowhere, ""},
	},
	"journal/*/lock": {
		"bits flipped": {nowhere, ""}, "cut": {nowhere, ""}, "empty": {nowhere, ""}, "deleted": {nowhere, ""},
	},
}

// TestDamageOfEveryFileIsNoticed damages each file of a data directory in each way while
// the gateway is stopped.
func TestDamageOfEveryFileIsNoticed(t *testing.T) {
	t.Parallel()
	_, url := e2e.NewMessageCounter(t)
	inventory := e2e.Fixture(t, "load.yaml", "SINK", url, "    decoders:\n", "    ledgers: [{id: assets, name: Assets}]\n    decoders:\n")
	g := e2e.NewGateway(t, e2e.Embedded(), inventory)
	relaytest.NoError(t, os.MkdirAll(g.DataDir(), 0o700))
	relaytest.NoError(t, os.WriteFile(filepath.Join(g.DataDir(), e2e.LedgerKeyFile), []byte("HxwdHhscGRoYFRYXFBESExAPDg0MCwoJCAcGBQQDAgE=\n"), 0o600)) // another key if its first bit flips
	g.Run()
	keepSome(g)
	relaytest.NoError(t, g.Stop())
	run := func(t *testing.T, damage damageCase, notice damageNotice, files ...string) {
		copied := e2e.NewGateway(t, g.Site, inventory)
		relaytest.NoError(t, os.CopyFS(copied.DataDir(), os.DirFS(g.DataDir())))
		for _, file := range files {
			damage(t, filepath.Join(copied.DataDir(), filepath.FromSlash(file)))
		}
		findNotices(copied, notice)
	}
	harmless := map[string][]string{} // files whose damage nobody misses, by how
	for _, file := range filesOf(t, g.DataDir()) {
		notices := noticesOf(t, file)
		for how, damage := range damagings {
			if info, err := os.Stat(filepath.Join(g.DataDir(), file)); err != nil || info.Size() == 0 {
				continue // a journal that has nothing yet
			}
			if notices[how].where == nowhere {
				harmless[how] = append(harmless[how], file)
				continue
			}
			t.Run(file+" "+how, func(t *testing.T) { t.Parallel(); run(t, damage, notices[how], file) })
		}
	}
	for how, files := range harmless {
		t.Run("all that nobody misses "+how, func(t *testing.T) { t.Parallel(); run(t, damagings[how], damageNotice{where: nowhere}, files...) })
	}
}

// keepSome has a gateway keep something of everything.
func keepSome(g *e2e.Gateway) {
	acme := g.As("acme-all-0123456")
	for n := range 20 {
		acme.PostInboundText(fmt.Sprint("used-", n), "447800000001", fmt.Sprint("used ", n))
		e2e.PostWebhook(g.T, acme, "/webhooks/lorawan", fmt.Sprintf(`{"deviceId": "used-%d", "temperature": 1}`, n))
	}
	acme.CreateToken("assets", `{}`)
	g.AwaitProcessed()
	relaytest.Eventually(g.T, "the messages are delivered", func() (any, bool) { all := g.Deliveries("state=delivered"); return all, len(all) == 20 })
	g.AwaitNode()
	for _, name := range []string{e2e.DatabaseFile, e2e.HeadsFile, e2e.TrafficFile} {
		relaytest.Eventually(g.T, name+" is written", func() (any, bool) { _, err := os.Stat(filepath.Join(g.DataDir(), name)); return err, err == nil })
	}
}

func filesOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	relaytest.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all = append(all, name)
		}
		return err
	}))
	return all
}

func noticesOf(t *testing.T, file string) map[string]damageNotice {
	t.Helper()
	for pattern, notices := range damageNotices {
		if matches, err := path.Match(pattern, file); err == nil && matches {
			return notices
		}
	}
	t.Fatalf("%s has no row in damageNotices", file)
	return nil
}

// findNotices checks how a gateway on a damaged data directory notices it.
func findNotices(g *e2e.Gateway, want damageNotice) {
	g.T.Helper()
	d, err := g.Open()
	if err != nil {
		if want.where != atStart || !strings.Contains(err.Error(), want.words) {
			g.T.Errorf("it does not start: %v\nwant: %s: %s", err, want.where, want.words)
		}
		return
	}
	if want.where == atStart {
		g.T.Errorf("it starts, want: %s%s", want.words, d.Abandon())
		return
	}
	g.Serve(d)
	relaytest.Eventually(g.T, want.where+": "+want.words, func() (any, bool) {
		status, r := g.Ready()
		said := fmt.Sprintf("%+v", r.Backends)
		switch want.where {
		case inReadyz:
			return said, status == http.StatusServiceUnavailable && strings.Contains(said, want.words)
		case inLog:
			warned := slices.ContainsFunc(strings.Split(g.Logs.String(), "\n"), func(line string) bool {
				return strings.Contains(line, want.words) && (strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN"))
			})
			return said, status == http.StatusOK && warned
		}
		return said, status == http.StatusOK
	})
}

// TestADamagedTableStopsWhatNeedsIt damages a table of the records: the gateway starts,
// says so, refuses what needs the table, and keeps what arrives, until it is restored as
// its message says.
func TestADamagedTableStopsWhatNeedsIt(t *testing.T) {
	t.Parallel()
	arrived, url := e2e.NewMessageCounter(t)
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.Fixture(t, "load.yaml", "SINK", url), "PENSTOCK_LISTEN="+porttest.Address(t))
	g.Spawn()
	acme, copied := g.As("acme-all-0123456"), filepath.Join(g.Dir, "backup")
	acme.PostInboundText("before", "447800000001", "before")
	relaytest.Eventually(t, "the first message is delivered", func() (any, bool) { all := g.Deliveries("state=delivered"); return all, len(all) == 1 })
	g.AwaitNode()
	g.RunTool("backup", copied)
	g.Kill()
	garbleTable(t, filepath.Join(g.DataDir(), db.File), "delivery")

	g.Spawn()
	const said = "the database file is damaged"
	acme.PostInboundText("meanwhile", "447800000001", "meanwhile")
	relaytest.Eventually(t, "/readyz says so", func() (any, bool) {
		status, r := g.Ready()
		return r, status == http.StatusServiceUnavailable && strings.Contains(r.Backends["records"].Error, said)
	})
	g.Admin().Get("/admin/deliveries").Mentions(t, 503)
	relaytest.Equal(t, "the number of quarantined events", len(g.Events("kind=sms&state=quarantined")), 0)
	if out, err := g.Command("backup", filepath.Join(g.Dir, "useless")).CombinedOutput(); e2e.ExitCode(err) != 1 || !strings.Contains(string(out), said) {
		t.Errorf("a backup of a damaged database: %d %s", e2e.ExitCode(err), out)
	}

	g.Kill()
	g.RunTool("restore", copied)
	g.Spawn()
	g.RunTool("recover").Mentions(t, "processing goes on")
	relaytest.Eventually(t, "what came meanwhile is delivered", func() (any, bool) {
		lost := arrived.Missing(slices.Values([]string{"before", "meanwhile"}))
		return lost, len(lost) == 0
	})
	g.AwaitReady()
	g.EndCleanly()
}

// garbleTable damages every page of a table in a SQLite database that nothing uses.
func garbleTable(t *testing.T, path, table string) {
	t.Helper()
	read, write, err := db.OpenSQLite(t.Context(), path, 1)
	relaytest.NoError(t, err)
	rows, err := read.QueryContext(t.Context(), "SELECT pageno FROM dbstat WHERE name = ?", table)
	relaytest.NoError(t, err)
	var pages []int
	for rows.Next() {
		var page int
		relaytest.NoError(t, rows.Scan(&page))
		pages = append(pages, page)
	}
	relaytest.NoError(t, errors.Join(rows.Err(), rows.Close(), read.Close(), write.Close())) // which moves the log into the file
	if len(pages) == 0 {
		t.Fatalf("%s has no pages", table)
	}
	rewriteFile(t, path, func(b []byte) []byte {
		for _, page := range pages {
			b[(page-1)*4096] ^= 1
		}
		return b
	})
}
