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

// openTestPrimary opens the primary of a gateway with PostgreSQL.
func openTestPrimary(t *testing.T, dir string) *primaryGuard {
	t.Helper()
	cfg := config.Config{DataDir: dir, Database: config.Database{URL: "postgres://h/d"}, Ledger: config.Ledger{MasterKey: "k"}}
	return relaytest.Must(openPrimary(t.Context(), cfg, "one", slog.New(slog.DiscardHandler)))(t)
}

func serverOnTimeline(n uint32) db.Server {
	return db.Server{Host: "h:5432", System: "7", Timeline: n}
}

func TestTheTimelineIsKnownAfterARestart(t *testing.T) {
	dir := t.TempDir()
	p := openTestPrimary(t, dir)
	for _, n := range []uint32{1, 1, 2, 2} {
		relaytest.NoError(t, p.admit(serverOnTimeline(n)))
	}
	p = openTestPrimary(t, dir)
	err := p.admit(serverOnTimeline(1))
	refusal, ok := err.(*db.ServerRefused)
	if !ok {
		t.Fatalf("an old primary after a restart: error = %v, want a ServerRefused", err)
	}
	relaytest.Must(p.acceptRefused(refusal))(t)
	for range 2 {
		relaytest.NoError(t, p.admit(serverOnTimeline(1))) // the accepted server
		p = openTestPrimary(t, dir)
	}
	relaytest.NoError(t, p.admit(db.Server{Host: "a server that does not report its timeline"}))
}

func TestServerIsAcceptedOnlyIfItIsStored(t *testing.T) {
	p := openTestPrimary(t, t.TempDir())
	relaytest.NoError(t, p.admit(serverOnTimeline(2)))
	p.path = filepath.Join(t.TempDir(), "missing", primaryFile)
	err := p.admit(serverOnTimeline(1))
	refusal, ok := errors.AsType[*db.ServerRefused](err)
	if !ok {
		t.Fatalf("an old primary: error = %v, want a ServerRefused", err)
	}
	if _, err := p.acceptRefused(refusal); err == nil || !strings.Contains(err.Error(), filepath.Dir(p.path)) {
		t.Errorf("a file that cannot be written: error = %v, want its directory", err)
	}
	if p.admit(serverOnTimeline(1)) == nil {
		t.Error("the server is admitted although it was not stored")
	}
}

func TestRecoverCommandAcceptsAServerOnlyWithTheFlag(t *testing.T) {
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

func TestGatewaysExchangeTheirServers(t *testing.T) {
	otherGateway := openTestPrimary(t, t.TempDir())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var received db.Server
		if r.URL.Path != "/internal/server" || json.NewDecoder(r.Body).Decode(&received) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(otherGateway.mergeServer(received))
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	p := openTestPrimary(t, dir)
	p.setPeers([]registry.Gateway{{Node: "one", URL: "http://127.0.0.1:1"}, {Node: "two", URL: server.URL}})
	relaytest.NoError(t, p.admit(serverOnTimeline(2)))
	p.exchange(t.Context())
	if otherGateway.admit(serverOnTimeline(1)) == nil {
		t.Error("the other gateway admits an old primary after the exchange")
	}
	relaytest.NoError(t, otherGateway.admit(serverOnTimeline(3)))
	if p = openTestPrimary(t, dir); p.admit(serverOnTimeline(2)) == nil {
		t.Error("a starting gateway admits an old primary although another gateway has a newer one")
	}
}
