package app

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/relay/db"
	registry "github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/relaytest"
)

// primaryIn opens the primary of a gateway with PostgreSQL.
func primaryIn(t *testing.T, dir string) *primary {
	t.Helper()
	cfg := config.Config{DataDir: dir, Database: config.Database{URL: "postgres://h/d"}, Ledger: config.Ledger{MasterKey: "k"}}
	return relaytest.Must(openPrimary(t.Context(), cfg, "one", slog.New(slog.DiscardHandler)))(t)
}

func onTimeline(n uint32) db.Server {
	return db.Server{Host: "h:5432", System: "7", Timeline: n}
}

func TestThePrimaryOutlivesARestart(t *testing.T) {
	dir := t.TempDir()
	p := primaryIn(t, dir)
	for _, n := range []uint32{1, 1, 2, 2} {
		relaytest.NoError(t, p.admit(onTimeline(n)))
	}
	p = primaryIn(t, dir)
	err := p.admit(onTimeline(1))
	refused, ok := err.(*db.ServerRefused)
	if !ok {
		t.Fatalf("an old primary after a restart: %v", err)
	}
	relaytest.Must(p.acceptRefused(refused))(t)
	for range 2 {
		relaytest.NoError(t, p.admit(onTimeline(1))) // it was restored
		p = primaryIn(t, dir)
	}
	relaytest.NoError(t, p.admit(db.Server{Host: "a server that does not report its timeline"}))
}

func TestAServerIsAcceptedOnlyIfItIsStored(t *testing.T) {
	p := primaryIn(t, t.TempDir())
	relaytest.NoError(t, p.admit(onTimeline(2)))
	p.path = filepath.Join(t.TempDir(), "missing", primaryFile)
	err := p.admit(onTimeline(1))
	refused, ok := errors.AsType[*db.ServerRefused](err)
	if !ok {
		t.Fatalf("an old primary: %v", err)
	}
	if _, err := p.acceptRefused(refused); err == nil || !strings.Contains(err.Error(), filepath.Dir(p.path)) {
		t.Errorf("a file that cannot be written: %v", err)
	}
	if p.admit(onTimeline(1)) == nil {
		t.Error("the server is used although it was not stored")
	}
}

// The command requests a running gateway to accept the server.
func TestRecoverAcceptsAServerOnlyWithTheFlag(t *testing.T) {
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.Method+" "+r.URL.Path+" "+string(body))
		_, _ = io.WriteString(w, `{"count": 0, "unknown": 0}`)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	unlock := relaytest.Must(lockJournals(dir))(t)
	defer unlock()
	w := client.Environment{Context: t.Context(), Stdout: io.Discard, Stderr: io.Discard, Variables: []string{
		"PENSTOCK_DATA_DIR=" + dir, "PENSTOCK_ADMIN_TOKEN=an-admin-token-0123456", "PENSTOCK_LISTEN=" + server.Listener.Addr().String(),
	}}
	for _, accept := range []bool{false, true} {
		relaytest.NoError(t, recoverCommand{AcceptServer: accept}.Run(w))
	}
	relaytest.Equal(t, "the requests", bodies, []string{"POST /admin/recover ", `POST /admin/recover {"accept_server": true}`})
}

func TestGatewaysExchangeTheirPrimary(t *testing.T) {
	other := primaryIn(t, t.TempDir())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var theirs db.Server
		if r.URL.Path != "/internal/server" || json.NewDecoder(r.Body).Decode(&theirs) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(other.newestServer(theirs))
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	p := primaryIn(t, dir)
	p.setPeers([]registry.Gateway{{Node: "one", URL: "http://127.0.0.1:1"}, {Node: "two", URL: server.URL}})
	relaytest.NoError(t, p.admit(onTimeline(2)))
	p.exchange(t.Context())
	if other.admit(onTimeline(1)) == nil {
		t.Error("the other gateway uses an old primary after it got the new one")
	}
	relaytest.NoError(t, other.admit(onTimeline(3)))
	if p = primaryIn(t, dir); p.admit(onTimeline(2)) == nil {
		t.Error("a starting gateway uses an old primary although another gateway has a newer one")
	}
}
