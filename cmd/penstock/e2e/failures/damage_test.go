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

// damageFunc damages a file while the gateway is stopped.
type damageFunc func(t *testing.T, path string)

// damageFuncs are the kinds of damage by name.
var damageFuncs = map[string]damageFunc{
	"bits flipped": func(t *testing.T, path string) {
		rewriteFile(t, path, func(b []byte) []byte {
			for offset := len(b) / 2 &^ 4095; offset < len(b); offset += 4096 { // the first byte of every page in the second half of a database
				b[offset] ^= 1
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

// damageNotice is the place where a gateway reports damage, and a part of the report.
type damageNotice struct{ place, words string }

// Places where a gateway reports damage.
const (
	atStart    = "the gateway does not start"
	inReadyz   = "/readyz is 503"
	inLog      = "the log has a warning or an error"
	unreported = "the gateway works"
)

// damageNotices maps each pattern of files in a data directory and each kind of damage to the expected
// notice.
var damageNotices = map[string]map[string]damageNotice{
	db.File: {
		"bits flipped": {atStart, "penstock.db: the database file is damaged"}, "cut": {atStart, "penstock.db: the database file is damaged"},
		"empty": {atStart, "penstock restore"}, "deleted": {atStart, "penstock restore"},
	},
	"readings/readings.db": {
		"bits flipped": {atStart, "readings.db: the database file is damaged"}, "cut": {atStart, "readings.db: the database file is damaged"},
		"empty": {inLog, "the journal is processed again"}, "deleted": {inLog, "the journal is processed again"},
	},
	"*.db-commits": { // the entries of the last transactions are processed again
		"bits flipped": {inLog, "the file with the number of writes is missing or damaged"}, "cut": {inLog, "the file with the number of writes is missing or damaged"},
		"empty": {inLog, "the file with the number of writes is missing or damaged"}, "deleted": {inLog, "the file with the number of writes is missing or damaged"},
	},
	"journal/*/*.segment": {
		"bits flipped": {inLog, "journal: damaged range skipped"}, "cut": {inLog, "journal: damaged range skipped"},
		"empty": {inLog, "journal: damaged range skipped"}, "deleted": {inLog, "journal: damaged range skipped"},
	},
	"journal/*/*.checkpoint": { // the entries after the checkpoint are processed again
		"bits flipped": {unreported, ""}, "cut": {unreported, ""}, "empty": {inLog, "checkpoint unreadable"}, "deleted": {unreported, ""},
	},
	e2e.LedgerKeyFile: {
		"bits flipped": {inReadyz, "another master key"}, "cut": {atStart, "ledger-key is damaged: restore it"},
		"empty": {atStart, "ledger-key is empty: restore it"}, "deleted": {inReadyz, "another master key"},
	},
	e2e.HeadsFile: {
		"bits flipped": {atStart, "ledger-heads: line 1"}, "cut": {unreported, ""}, "empty": {unreported, ""}, "deleted": {unreported, ""}, // the heads are also sealed in the database
	},
	e2e.NodeFile: {
		"bits flipped": {atStart, "was written by gateway"}, "cut": {atStart, "was written by gateway"},
		"empty": {atStart, "was written by gateway"}, "deleted": {atStart, "was written by gateway"},
	},
	e2e.DatabaseFile: {
		"bits flipped": {atStart, "database is damaged"}, "cut": {atStart, "database is damaged"},
		"empty": {atStart, "database is damaged"}, "deleted": {unreported, ""}, // the file is written again
	},
	e2e.TrafficFile: { // used only for charts
		"bits flipped": {inLog, "minutes are missing"}, "cut": {inLog, "begin anew"}, "empty": {unreported, ""}, "deleted": {unreported, ""},
	},
	"mail/*/*": { // the gateway never reads its mails
		"bits flipped": {unreported, ""}, "cut": {unreported, ""}, "empty": {unreported, ""}, "deleted": {unreported, ""},
	},
	"journal/*/lock": {
		"bits flipped": {unreported, ""}, "cut": {unreported, ""}, "empty": {unreported, ""}, "deleted": {unreported, ""},
	},
}

// TestDamageOfEveryFileIsNoticed damages each file of a data directory in each way while the
// gateway is stopped, and checks where the gateway reports the damage.
func TestDamageOfEveryFileIsNoticed(t *testing.T) {
	t.Parallel()
	_, url := e2e.NewMessageCounter(t)
	inventory := e2e.Fixture(t, "load.yaml", "SINK", url, "    decoders:\n", "    ledgers: [{id: assets, name: Assets}]\n    decoders:\n")
	g := e2e.NewGateway(t, e2e.Embedded(), inventory)
	relaytest.NoError(t, os.MkdirAll(g.DataDir(), 0o700))
	relaytest.NoError(t, os.WriteFile(filepath.Join(g.DataDir(), e2e.LedgerKeyFile), []byte("HxwdHhscGRoYFRYXFBESExAPDg0MCwoJCAcGBQQDAgE=\n"), 0o600)) // "bits flipped" makes it another valid key
	g.Run()
	fillStores(g)
	relaytest.NoError(t, g.Stop())
	run := func(t *testing.T, damage damageFunc, notice damageNotice, files ...string) {
		copiedGateway := e2e.NewGateway(t, g.Site, inventory)
		relaytest.NoError(t, os.CopyFS(copiedGateway.DataDir(), os.DirFS(g.DataDir())))
		for _, file := range files {
			damage(t, filepath.Join(copiedGateway.DataDir(), filepath.FromSlash(file)))
		}
		checkNotice(copiedGateway, notice)
	}
	harmless := map[string][]string{} // files without an expected notice, by kind of damage
	for _, file := range filesOf(t, g.DataDir()) {
		notices := noticesOf(t, file)
		for name, damage := range damageFuncs {
			if info, err := os.Stat(filepath.Join(g.DataDir(), file)); err != nil || info.Size() == 0 {
				continue // an empty journal
			}
			if notices[name].place == unreported {
				harmless[name] = append(harmless[name], file)
				continue
			}
			t.Run(file+" "+name, func(t *testing.T) { t.Parallel(); run(t, damage, notices[name], file) })
		}
	}
	for name, files := range harmless {
		t.Run("all harmless files "+name, func(t *testing.T) { t.Parallel(); run(t, damageFuncs[name], damageNotice{place: unreported}, files...) })
	}
}

// fillStores makes a gateway write every kind of file.
func fillStores(g *e2e.Gateway) {
	acme := g.WithToken("acme-all-0123456")
	for n := range 20 {
		acme.PostInboundText(fmt.Sprint("used-", n), "447800000001", fmt.Sprint("used ", n))
		e2e.PostWebhook(g.T, acme, "/webhooks/lorawan", fmt.Sprintf(`{"deviceId": "used-%d", "temperature": 1}`, n))
	}
	acme.CreateToken("assets", `{}`)
	g.AwaitProcessed()
	relaytest.Eventually(g.T, "the messages are delivered", func() (any, bool) {
		delivered := g.Deliveries("state=delivered")
		return delivered, len(delivered) == 20
	})
	g.AwaitNode()
	for _, name := range []string{e2e.DatabaseFile, e2e.HeadsFile, e2e.TrafficFile} {
		relaytest.Eventually(g.T, name+" is written", func() (any, bool) { _, err := os.Stat(filepath.Join(g.DataDir(), name)); return err, err == nil })
	}
}

func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	relaytest.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	}))
	return names
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

// checkNotice checks the report of a gateway about its damaged data directory.
func checkNotice(g *e2e.Gateway, want damageNotice) {
	g.T.Helper()
	opened, err := g.Open()
	if err != nil {
		if want.place != atStart || !strings.Contains(err.Error(), want.words) {
			g.T.Errorf("the start fails: %v\nwant: %s: %s", err, want.place, want.words)
		}
		return
	}
	if want.place == atStart {
		g.T.Errorf("the start succeeds, want an error with %q%s", want.words, opened.Abandon())
		return
	}
	g.Serve(opened)
	relaytest.Eventually(g.T, want.place+": "+want.words, func() (any, bool) {
		status, r := g.Ready()
		backends := fmt.Sprintf("%+v", r.Backends)
		switch want.place {
		case inReadyz:
			return backends, status == http.StatusServiceUnavailable && strings.Contains(backends, want.words)
		case inLog:
			warned := slices.ContainsFunc(strings.Split(g.Logs.String(), "\n"), func(line string) bool {
				return strings.Contains(line, want.words) && (strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN"))
			})
			return backends, status == http.StatusOK && warned
		}
		return backends, status == http.StatusOK
	})
}

// TestDamagedTableStopsRequestsThatNeedIt damages the delivery table of the database. The gateway starts,
// reports the damage, refuses requests that need the table, and keeps messages in the journal until the
// database is restored.
func TestDamagedTableStopsRequestsThatNeedIt(t *testing.T) {
	t.Parallel()
	arrivals, url := e2e.NewMessageCounter(t)
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.Fixture(t, "load.yaml", "SINK", url), "PENSTOCK_LISTEN="+porttest.Address(t))
	g.Spawn()
	acme, backupDir := g.WithToken("acme-all-0123456"), filepath.Join(g.Dir, "backup")
	acme.PostInboundText("before", "447800000001", "before")
	relaytest.Eventually(t, "the first message is delivered", func() (any, bool) {
		delivered := g.Deliveries("state=delivered")
		return delivered, len(delivered) == 1
	})
	g.AwaitNode()
	g.RunTool("backup", backupDir)
	g.Kill()
	garbleTable(t, filepath.Join(g.DataDir(), db.File), "delivery")

	g.Spawn()
	const notice = "the database file is damaged"
	acme.PostInboundText("meanwhile", "447800000001", "meanwhile")
	relaytest.Eventually(t, "/readyz reports the damage", func() (any, bool) {
		status, r := g.Ready()
		return r, status == http.StatusServiceUnavailable && strings.Contains(r.Backends["records"].Error, notice)
	})
	g.Admin().Get("/admin/deliveries").Mentions(t, 503)
	relaytest.Equal(t, "the number of quarantined events", len(g.Events("kind=sms&state=quarantined")), 0)
	if output, err := g.Command("backup", filepath.Join(g.Dir, "useless")).CombinedOutput(); e2e.ExitCode(err) != 1 || !strings.Contains(string(output), notice) {
		t.Errorf("a backup of a damaged database: exit code = %d, output = %s, want 1 and the damage", e2e.ExitCode(err), output)
	}

	g.Kill()
	g.RunTool("restore", backupDir)
	g.Spawn()
	g.RunTool("recover").Mentions(t, "processing continues")
	relaytest.Eventually(t, "both messages are delivered", func() (any, bool) {
		missing := arrivals.MissingItems(slices.Values([]string{"before", "meanwhile"}))
		return missing, len(missing) == 0
	})
	g.AwaitReady()
	g.TerminateCleanly()
}

// garbleTable damages every page of a table in a SQLite database. No process may have the database open.
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
	relaytest.NoError(t, errors.Join(rows.Err(), rows.Close(), read.Close(), write.Close())) // Close moves the write-ahead log into the file
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
