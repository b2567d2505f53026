package failures

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestEmbeddedStoresCatchUp starts gateways on damaged copies of a running gateway's databases. Without
// a command, a gateway processes the journal again from the first entry that the database may lack.
func TestEmbeddedStoresCatchUp(t *testing.T) {
	t.Parallel()
	arrivals, url := e2e.NewMessageCounter(t)
	inventory := e2e.Fixture(t, "load.yaml", "SINK", url)
	g := e2e.NewGateway(t, e2e.Embedded(), inventory)
	g.Run()
	l := e2e.NewLoad(g)
	post := func(start, end int) {
		for n := start; n < end; n++ {
			l.Frame(0, n)
			l.Message(0, n)
		}
		l.Check(t, arrivals)
	}
	const total = 40
	post(0, total/2)
	relaytest.NoError(t, g.Stop()) // Stop empties the write-ahead logs
	g.Run()
	earlierDir := t.TempDir()
	relaytest.NoError(t, os.CopyFS(earlierDir, os.DirFS(g.DataDir())))
	post(total/2, total)
	allDelivered := func(g *e2e.Gateway) (any, bool) {
		delivered := g.Deliveries("state=delivered&limit=1000")
		return delivered, len(delivered) == total
	}
	relaytest.Eventually(t, "every message is delivered", func() (any, bool) { return allDelivered(g) })

	const readings = "readings/readings.db"
	restoreEarlierCopy := func(t *testing.T, path string) {
		t.Helper()
		name, err := filepath.Rel(filepath.Dir(filepath.Dir(path)), path)
		relaytest.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(earlierDir, name))
		relaytest.NoError(t, err, os.WriteFile(path, b, 0o600), os.Remove(path+"-wal"))
	}
	flipBytes := func(t *testing.T, path string) {
		t.Helper()
		rewriteFile(t, path, func(b []byte) []byte {
			for i := range 8 {
				b[len(b)*6/10+i] ^= 0xff
			}
			return b
		})
	}
	for _, tc := range []struct {
		file, name string
		damage     damageFunc
	}{
		{db.File + "-wal", "deleted", damageFuncs["deleted"]}, {db.File + "-wal", "empty", damageFuncs["empty"]},
		{db.File + "-wal", "8 bytes flipped", flipBytes},
		{readings + "-wal", "deleted", damageFuncs["deleted"]}, {readings + "-wal", "empty", damageFuncs["empty"]},
		{readings + "-wal", "8 bytes flipped", flipBytes},
		{readings, "deleted", func(t *testing.T, path string) { relaytest.NoError(t, os.RemoveAll(filepath.Dir(path))) }},
		{readings, "an earlier copy", restoreEarlierCopy},
	} {
		t.Run(tc.file+" "+tc.name, func(t *testing.T) {
			damaged := e2e.NewGateway(t, g.Site, inventory)
			relaytest.NoError(t, os.CopyFS(damaged.DataDir(), os.DirFS(g.DataDir())))
			tc.damage(t, filepath.Join(damaged.DataDir(), tc.file))
			damaged.Run()
			damaged.AwaitProcessed()
			l.Frames.Check(t, e2e.CarrierOf(damaged))
			relaytest.Eventually(t, "every message has its delivery", func() (any, bool) { return allDelivered(damaged) })
			damaged.AwaitReady()
			log := damaged.Logs.String()
			if !strings.Contains(log, "a database has lost its newest writes") {
				t.Errorf("log = %s\nwant a report of the lost writes", log)
			}
			// The writes after the flipped bytes may contain only results of deliveries, for which the
			// journal is not needed.
			if !strings.Contains(log, "the journal is processed again") && tc.file+tc.name != db.File+"-wal8 bytes flipped" {
				t.Errorf("log = %s\nwant a report that the journal is processed again", log)
			}
			damaged.Admin().Post("/admin/recover", "").Mentions(t, http.StatusOK, `"missing":{"since":"`, `"until":"20`)
			relaytest.Equal(t, "the status of a second recover", damaged.Admin().Post("/admin/recover", "").Status, http.StatusConflict)
		})
	}
}
