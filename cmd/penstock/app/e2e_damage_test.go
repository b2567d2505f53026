package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/relay/sqlstore"
)

// damaging is a way to damage a file.
type damaging func(t *testing.T, path string)

// The ways that a file is damaged while the gateway is stopped.
var damagings = map[string]damaging{
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
	"deleted": func(t *testing.T, path string) { must(t, os.Remove(path)) },
}

func rewriteFile(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, change(b), 0o600))
}

// noticed is how damage is noticed: where, and some words of it.
type noticed struct{ where, words string }

// Where damage is noticed.
const (
	atStart  = "the gateway does not start"
	inReadyz = "/readyz is 503"
	inLog    = "the log has a warning or an error"
	nowhere  = "the gateway works, and nothing is lost"
)

// damageNotices are the files of a data directory by pattern, and how each way to damage
// them is noticed.
var damageNotices = map[string]map[string]noticed{
	sqlstore.File: {
		"bits flipped": {atStart, "penstock.db: the database file is damaged"}, "cut": {atStart, "penstock.db: the database file is damaged"},
		"empty": {atStart, "penstock restore"}, "deleted": {atStart, "penstock restore"},
	},
	"readings/readings.db": {
		"bits flipped": {inReadyz, "the database file is damaged"}, "cut": {atStart, "readings.db: the database file is damaged"},
		"empty": {atStart, "penstock restore"}, "deleted": {atStart, "penstock restore"},
	},
	"journal/*/*.segment": {
		"bits flipped": {inLog, "journal: damaged range skipped"}, "cut": {inLog, "journal: damaged range skipped"},
		"empty": {inLog, "journal: damaged range skipped"}, "deleted": {inLog, "journal: damaged range skipped"},
	},
	"journal/*/*.checkpoint": { // what is behind it is processed again
		"bits flipped": {nowhere, ""}, "cut": {nowhere, ""}, "empty": {inLog, "checkpoint unreadable"}, "deleted": {nowhere, ""},
	},
	ledgerKeyFile: {
		"bits flipped": {inReadyz, "another master key"}, "cut": {atStart, "ledger-key is damaged: restore it"},
		"empty": {atStart, "ledger-key is empty: restore it"}, "deleted": {inReadyz, "another master key"},
	},
	headsFile: {
		"bits flipped": {atStart, "ledger-heads: line 1"}, "cut": {nowhere, ""}, "empty": {nowhere, ""}, "deleted": {nowhere, ""}, // also sealed in the database
	},
	nodeFile: {
		"bits flipped": {atStart, "was written by the gateway"}, "cut": {atStart, "was written by the gateway"},
		"empty": {atStart, "was written by the gateway"}, "deleted": {atStart, "was written by the gateway"},
	},
	databaseFile: {
		"bits flipped": {atStart, "database is damaged"}, "cut": {atStart, "database is damaged"},
		"empty": {atStart, "database is damaged"}, "deleted": {nowhere, ""}, // and is written again
	},
	trafficFile: { // charts only
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
	_, url := newTally(t)
	inventory := fixture(t, "load.yaml", "SINK", url, "    decoders:\n", "    ledgers: [{id: assets, name: Assets}]\n    decoders:\n")
	g := newGateway(t, &site{name: "embedded"}, inventory)
	must(t, os.MkdirAll(g.data(), 0o700))
	must(t, writeDurably(g.data(), ledgerKeyFile, "HxwdHhscGRoYFRYXFBESExAPDg0MCwoJCAcGBQQDAgE=\n")) // another key if its first bit flips
	g.run()
	g.keepSome()
	must(t, g.stop())
	for _, file := range filesOf(t, g.data()) {
		notices := noticesOf(t, file)
		for how, damage := range damagings {
			if info, err := os.Stat(filepath.Join(g.data(), file)); err != nil || info.Size() == 0 {
				continue // a journal that has nothing yet
			}
			t.Run(file+" "+how, func(t *testing.T) {
				t.Parallel()
				copied := newGateway(t, g.site, inventory)
				must(t, os.CopyFS(copied.data(), os.DirFS(g.data())))
				damage(t, filepath.Join(copied.data(), filepath.FromSlash(file)))
				copied.notices(notices[how])
			})
		}
	}
}

// keepSome has a gateway keep something of everything.
func (g *gateway) keepSome() {
	acme := g.as("acme-all-0123456")
	for n := range 20 {
		acme.text(fmt.Sprint("used-", n), "447800000001", fmt.Sprint("used ", n))
		hook(g.t, acme, "/webhooks/lorawan", fmt.Sprintf(`{"deviceId": "used-%d", "temperature": 1}`, n))
	}
	var job string
	acme.post("/ledgers/assets/tokens", `{}`).into(g.t, &job)
	g.jobDone(acme, job, nil)
	g.settled()
	eventually(g.t, "the messages are delivered", func() (any, bool) { all := g.deliveries("state=delivered"); return all, len(all) == 20 })
	g.registered()
	for _, name := range []string{databaseFile, headsFile, trafficFile} {
		eventually(g.t, name+" is written", func() (any, bool) { _, err := os.Stat(filepath.Join(g.data(), name)); return err, err == nil })
	}
}

func filesOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all = append(all, name)
		}
		return err
	}))
	return all
}

func noticesOf(t *testing.T, file string) map[string]noticed {
	t.Helper()
	for pattern, notices := range damageNotices {
		if matches, err := path.Match(pattern, file); err == nil && matches {
			return notices
		}
	}
	t.Fatalf("%s has no row in damageNotices", file)
	return nil
}

// notices checks how a gateway on a damaged data directory notices it.
func (g *gateway) notices(want noticed) {
	g.t.Helper()
	cfg, err := config.Load(g.file, g.env)
	must(g.t, err)
	handler, _ := NewLog(g.logs, cfg.Log)
	d, err := Open(context.Background(), cfg, slog.New(handler), "test")
	if err != nil {
		if want.where != atStart || !strings.Contains(err.Error(), want.words) {
			g.t.Errorf("it does not start: %v\nwant: %s: %s", err, want.where, want.words)
		}
		return
	}
	if want.where == atStart {
		g.t.Errorf("it starts, want: %s%s", want.words, d.Abandon())
		return
	}
	g.serves(d)
	eventually(g.t, want.where+": "+want.words, func() (any, bool) {
		status, r := g.ready()
		said := fmt.Sprintf("%+v", r.Backends)
		switch want.where {
		case inReadyz:
			return said, status == http.StatusServiceUnavailable && strings.Contains(said, want.words)
		case inLog:
			warned := slices.ContainsFunc(strings.Split(g.logs.String(), "\n"), func(line string) bool {
				return strings.Contains(line, want.words) && (strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN"))
			})
			return said, status == http.StatusOK && warned
		}
		return said, status == http.StatusOK
	})
}

// serves has an opened gateway serve until the test ends.
func (g *gateway) serves(d *Gateway) {
	g.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(errors.Join(err, errors.New(d.Abandon())))
	}
	g.base.Store(new("http://" + listener.Addr().String()))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, listener) }()
	g.t.Cleanup(func() { cancel(); <-ended }) // it may end with the damage
}

// TestADamagedTableStopsWhatNeedsIt damages a table of the records: the gateway starts,
// says so, refuses what needs the table, and keeps what arrives, until it is restored as
// its message says.
func TestADamagedTableStopsWhatNeedsIt(t *testing.T) {
	t.Parallel()
	arrived, url := newTally(t)
	g := newGateway(t, &site{name: "embedded"}, fixture(t, "load.yaml", "SINK", url), "PENSTOCK_LISTEN="+fixedAddress(t))
	g.spawn()
	acme, copied := g.as("acme-all-0123456"), filepath.Join(g.dir, "backup")
	acme.text("before", "447800000001", "before")
	eventually(t, "the first message is delivered", func() (any, bool) { all := g.deliveries("state=delivered"); return all, len(all) == 1 })
	g.registered()
	g.tool("backup", copied)
	g.kill()
	garbleTable(t, filepath.Join(g.data(), sqlstore.File), "delivery")

	g.spawn()
	const said = "the database file is damaged"
	acme.text("meanwhile", "447800000001", "meanwhile")
	eventually(t, "/readyz says so", func() (any, bool) {
		status, r := g.ready()
		return r, status == http.StatusServiceUnavailable && strings.Contains(r.Backends["records"].Error, said)
	})
	g.admin().get("/admin/deliveries").mentions(t, 503)
	if set := g.events("kind=sms&state=quarantined"); len(set) > 0 {
		t.Errorf("quarantined: %+v", set)
	}
	if out, err := g.command("backup", filepath.Join(g.dir, "useless")).CombinedOutput(); exitCode(err) != 1 || !strings.Contains(string(out), said) {
		t.Errorf("a backup of a damaged database: %d %s", exitCode(err), out)
	}

	g.kill()
	g.tool("restore", copied)
	g.spawn()
	g.tool("recover").mentions(t, "processing goes on")
	eventually(t, "what came meanwhile is delivered", func() (any, bool) {
		lost := arrived.missing(map[string]bool{"before": true, "meanwhile": true})
		return lost, len(lost) == 0
	})
	eventually(t, "the gateway is ready", func() (any, bool) { status, r := g.ready(); return r, status == http.StatusOK })
	if code := g.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// garbleTable damages every page of a table in a SQLite database that nothing uses.
func garbleTable(t *testing.T, path, table string) {
	t.Helper()
	read, write, err := sqlstore.OpenSQLite(t.Context(), path, 1)
	must(t, err)
	rows, err := read.QueryContext(t.Context(), "SELECT pageno FROM dbstat WHERE name = ?", table)
	must(t, err)
	var pages []int
	for rows.Next() {
		var page int
		must(t, rows.Scan(&page))
		pages = append(pages, page)
	}
	must(t, errors.Join(rows.Err(), rows.Close(), read.Close(), write.Close())) // which moves the log into the file
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
