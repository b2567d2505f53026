package app

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// Messages that were due while the lost writes were made may have been sent. They must not be sent
// again without a request.
func TestMessagesDueDuringLostWritesAreNotSentAgain(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	writeSettings := func(n int) {
		t.Helper()
		database := dbtest.Open(t, db.Options{Dir: dir})
		trackPositions([]embeddedStore{{database: database}}, nil)
		for range n {
			relaytest.NoError(t, database.Run(ctx, "test", "INSERT INTO setting (name, value) VALUES ($1, '')", rand.Text()))
		}
		relaytest.NoError(t, database.Close())
	}
	writeSettings(1)
	earlier := relaytest.Must(os.ReadFile(filepath.Join(dir, db.File)))(t)
	writeSettings(3)
	relaytest.NoError(t, os.WriteFile(filepath.Join(dir, db.File), earlier, 0o600))

	database := dbtest.Open(t, db.Options{Dir: dir})
	loss := database.Progress().Loss()
	relaytest.Equal(t, "whether a loss is found", loss.Found, true)
	m, halts := newMembership(t, database, "n1")
	relaytest.NoError(t, m.catchUp(ctx, []embeddedStore{{database: database, file: db.File}}))
	if len(*halts) != 1 {
		t.Fatalf("afterRestore was called %d times, want once", len(*halts))
	}
	halt := (*halts)[0]
	if !halt.IsActive() || !halt.Since.Equal(loss.Until) || !halt.LastWrite.Equal(loss.Since) {
		t.Errorf("lost time = %s to %s, want %s to %s", halt.LastWrite, halt.Since, loss.Since, loss.Until)
	}
}
