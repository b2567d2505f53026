package app

import (
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sqlstore"
	"github.com/penstock/penstock/relay/sqlstore/sqltest"
)

// Messages that were due in the time that the records have lost may have been sent: they
// must not be sent again by themselves.
func TestMessagesOfALostTimeAreNotSentAgain(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	write := func(times int) {
		t.Helper()
		db := sqltest.Open(t, sqlstore.Options{Dir: dir})
		follow([]embeddedStore{{database: db}}, nil)
		for range times {
			relaytest.NoError(t, db.Run(ctx, "test", "INSERT INTO setting (name, value) VALUES ($1, '')", rand.Text()))
		}
		relaytest.NoError(t, db.Close())
	}
	write(1)
	earlier := relaytest.Must(os.ReadFile(filepath.Join(dir, sqlstore.File)))(t)
	write(3)
	relaytest.NoError(t, os.WriteFile(filepath.Join(dir, sqlstore.File), earlier, 0o600))

	db := sqltest.Open(t, sqlstore.Options{Dir: dir})
	loss := db.Progress().Loss()
	relaytest.Equal(t, "a loss is found", loss.Found, true)
	m, halts := newMembership(t, db, "n1")
	relaytest.NoError(t, m.catchUp(ctx, []embeddedStore{{database: db, file: sqlstore.File}}, slog.New(slog.DiscardHandler)))
	if len(*halts) != 1 {
		t.Fatalf("afterRestore was called %d times, want once", len(*halts))
	}
	halt := (*halts)[0]
	if !halt.Holds() || !halt.Since.Equal(loss.Until) || !halt.LastWrite.Equal(loss.Since) {
		t.Errorf("the lost time is from %s to %s, want %s to %s", halt.LastWrite, halt.Since, loss.Since, loss.Until)
	}
}
