package db_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// stallingProxy forwards connections to a server. While it is stalled it accepts connections
// and forwards nothing, like a stopped server or a network that drops packets.
type stallingProxy struct {
	addr    string
	stalled atomic.Bool
}

func newStallingProxy(t *testing.T, target string) *stallingProxy {
	l := relaytest.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	p, ended := &stallingProxy{addr: l.Addr().String()}, make(chan struct{})
	t.Cleanup(func() {
		close(ended)
		_ = l.Close()
	})
	forward := func(dst io.Writer, src io.Reader) {
		buf := make([]byte, 32<<10)
		for {
			n, err := src.Read(buf)
			if p.stalled.Load() {
				<-ended
				return
			}
			if _, writeErr := dst.Write(buf[:n]); err != nil || writeErr != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				if p.stalled.Load() {
					<-ended
					return
				}
				server, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer server.Close()
				go func() {
					defer server.Close()
					forward(server, client)
				}()
				forward(client, server)
			}()
		}
	}()
	return p
}

// hostsIn returns the hosts of a URL.
func hostsIn(url string) []string {
	_, hostsAndPath, _ := strings.Cut(url, "@")
	hosts, _, _ := strings.Cut(hostsAndPath, "/")
	return strings.Split(hosts, ",")
}

// withHosts returns a URL with the hosts replaced.
func withHosts(url string, hosts ...string) string {
	return strings.Replace(url, strings.Join(hostsIn(url), ","), strings.Join(hosts, ","), 1)
}

// portOf returns the port of the connected server.
func portOf(t *testing.T, database *db.DB) (string, error) {
	return db.Value[string](t.Context(), database, "port", "SELECT inet_server_port()::text")
}

// newestServer holds the newest server. admit refuses servers that are not its successors, as a gateway does.
type newestServer struct {
	mu     sync.Mutex
	server db.Server
}

func (n *newestServer) admit(found db.Server) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.server.Refuse(found)
	if err == nil && found.System != "" {
		n.server = n.server.Newer(found)
	}
	return err
}

func TestOpenSkipsAHostThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	url := server.NewDatabase(t)
	hung := newStallingProxy(t, "")
	hung.stalled.Store(true)
	database := dbtest.Open(t, db.Options{URL: withHosts(url, hung.addr, hostsIn(url)[0]), Timeout: 3 * time.Second})
	if err := database.HostErrors(); !strings.Contains(fmt.Sprint(err), hung.addr) {
		t.Errorf("host errors = %v, want %s", err, hung.addr)
	}
}

func TestAStandbyIsNotABadHost(t *testing.T) {
	url := dbtest.StartPair(t).NewDatabase(t)
	for _, attrs := range []string{"any", "read-write", "primary", "prefer-standby"} {
		database := dbtest.Open(t, db.Options{URL: url + "?target_session_attrs=" + attrs})
		relaytest.Eventually(t, "no bad host with target_session_attrs="+attrs, func() (any, bool) { // the database may not have reached the standby
			database.Probe(t.Context())
			return database.HostErrors(), database.HostErrors() == nil
		})
		relaytest.NoError(t, database.Run(t.Context(), "test", "UPDATE version SET n = n WHERE name = ''"))
	}
}

func TestACanceledProbeMarksNoHostBad(t *testing.T) {
	database := dbtest.Open(t, db.Options{URL: dbtest.StartPostgres(t).NewDatabase(t)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	database.Probe(ctx)
	relaytest.NoError(t, database.HostErrors())
}

// The log reports a host when its error changes.
func TestTheErrorOfAHostIsTheSameForEachConnection(t *testing.T) {
	resets := relaytest.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = resets.Close() })
	go func() {
		for {
			conn, err := resets.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	}()
	url := dbtest.StartPostgres(t).NewDatabase(t)
	database := dbtest.Open(t, db.Options{URL: withHosts(url, hostsIn(url)[0], resets.Addr().String())})
	var texts []string
	for range 2 {
		database.Probe(t.Context())
		texts = append(texts, fmt.Sprint(database.HostErrors()))
	}
	relaytest.Equal(t, "the error of the second probe", texts[1], texts[0])
	if !strings.Contains(texts[0], resets.Addr().String()) {
		t.Errorf("error = %s, want the host %s", texts[0], resets.Addr())
	}
}

func TestAPrimaryThatHangsIsLeft(t *testing.T) {
	t.Parallel()
	pair := dbtest.StartPair(t)
	url := pair.NewDatabase(t)
	proxy := newStallingProxy(t, hostsIn(url)[0])
	database := dbtest.Open(t, db.Options{URL: withHosts(url, proxy.addr, hostsIn(url)[1]), Timeout: 3 * time.Second})
	dbtest.RunConcurrently(8, func(int) { // opens idle connections
		relaytest.NoError(t, database.Run(t.Context(), "test", "UPDATE version SET n = n WHERE name = ''"))
	})
	proxy.stalled.Store(true)
	t.Cleanup(pair.Primary.Kill) // commits of the primary wait for the standby
	pair.Promote()
	relaytest.Eventually(t, "the standby is used", func() (any, bool) {
		port, err := portOf(t, database)
		return fmt.Sprint(port, err), err == nil && strings.HasSuffix(hostsIn(url)[1], ":"+port)
	})
}

func TestAnOldPrimaryIsRefused(t *testing.T) {
	t.Parallel()
	pair := dbtest.StartPair(t)
	url := pair.NewDatabase(t)
	hosts := hostsIn(url)
	newest := new(newestServer)
	database := dbtest.Open(t, db.Options{URL: url, Admit: newest.admit})
	former := pair.Primary
	former.Kill()
	pair.Promote()
	relaytest.Eventually(t, "the standby is used", func() (any, bool) {
		port, err := portOf(t, database)
		return fmt.Sprint(port, err), err == nil && strings.HasSuffix(hosts[1], ":"+port)
	})
	former.Start()
	t.Cleanup(former.Kill) // commits of the old primary wait for the standby
	database.Probe(t.Context())
	refused, ok := errors.AsType[*db.ServerRefused](database.HostErrors())
	if !ok {
		t.Fatalf("host errors = %v, want the old primary refused", database.HostErrors())
	}
	relaytest.Equal(t, "host and timeline of the refused and the promoted server", []any{refused.Found.Host, refused.Found.Timeline, refused.Known.Host, refused.Known.Timeline},
		[]any{hosts[0], uint32(1), hosts[1], uint32(2)})
	_, err := db.Connect(t.Context(), db.Options{URL: withHosts(url, hosts[0]), Admit: newest.admit})
	if relay.KindOf(err) != relay.KindUnavailable || !strings.Contains(err.Error(), hosts[0]) || !strings.Contains(err.Error(), hosts[1]) {
		t.Errorf("error of Connect to the old primary = %v, want both hosts", err)
	}
	reopened := dbtest.Open(t, db.Options{URL: url, Admit: newest.admit})
	if port, err := portOf(t, reopened); err != nil || !strings.HasSuffix(hosts[1], ":"+port) {
		t.Errorf("port after the return of the old primary = %s, error = %v, want %s", port, err, hosts[1])
	}
}

// A gateway may still be connected to the old primary when another gateway reports a
// promotion.
func TestConnectionsToAnOldPrimaryAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	newest := new(newestServer)
	database := dbtest.Open(t, db.Options{URL: dbtest.StartPostgres(t).NewDatabase(t), Admit: newest.admit})
	newest.mu.Lock()
	newest.server.Timeline++
	newest.mu.Unlock()
	if _, err := portOf(t, database); relay.KindOf(err) != relay.KindUnavailable || !strings.Contains(err.Error(), "old primary") {
		t.Errorf("error of the existing connection = %v, want old primary", err)
	}
}

func TestAServerWithoutAnIdentityIsAdmitted(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	admin := dbtest.Open(t, db.Options{URL: server.NewDatabase(t)})
	if err := admin.IdentityError(); err != nil {
		t.Errorf("IdentityError of a server with an identity = %v, want nil", err)
	}
	for _, statement := range []string{"CREATE ROLE app LOGIN", "GRANT ALL ON SCHEMA public TO app", "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC"} {
		relaytest.NoError(t, admin.Run(t.Context(), "test", statement))
	}
	name := relaytest.Must(db.Value[string](t.Context(), admin, "test", "SELECT current_database()"))(t)
	url := strings.Replace(server.URL+name, "postgres@", "app@", 1)
	newest := &newestServer{server: db.Server{System: "1", Timeline: 9}}
	database := relaytest.Must(db.Connect(t.Context(), db.Options{URL: url, Admit: func(found db.Server) error {
		if found.System == "" {
			return nil
		}
		return newest.admit(found)
	}}))(t)
	t.Cleanup(func() { _ = database.Close() })
	if err := database.IdentityError(); !strings.Contains(fmt.Sprint(err), "pg_control_system") {
		t.Errorf("IdentityError = %v, want pg_control_system", err)
	}
}

// TestAHostThatCannotBeUsedIsNamed opens databases on a host that refuses connections and on a
// host that does not answer.
func TestAHostThatCannotBeUsedIsNamed(t *testing.T) {
	silent := relaytest.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = silent.Close() })
	refusing := relaytest.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	relaytest.NoError(t, refusing.Close())
	for name, tc := range map[string]struct{ host, reason string }{
		"refuses":       {refusing.Addr().String(), "connection refused"},
		"never answers": {silent.Addr().String(), "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := db.Open(t.Context(), db.Options{URL: "postgres://u:secret@" + tc.host + "/d?sslmode=disable", Timeout: time.Second})
			text := fmt.Sprint(err)
			if relay.KindOf(err) != relay.KindUnavailable || !strings.Contains(text, tc.host) || !strings.Contains(text, tc.reason) || strings.Contains(text, "secret") {
				t.Errorf("error = %q, want %s and %q", text, tc.host, tc.reason)
			}
		})
	}
}

// An emptied database counts as unavailable, so that requests are retried, not refused.
func TestAnEmptiedDatabaseIsDown(t *testing.T) {
	t.Parallel()
	database := dbtest.Open(t, db.Options{URL: dbtest.StartPostgres(t).NewDatabase(t)})
	for _, statement := range []string{"DROP SCHEMA public CASCADE", "CREATE SCHEMA public"} {
		relaytest.NoError(t, database.Run(t.Context(), "test", statement))
	}
	for name, err := range map[string]error{
		"a write": database.Run(t.Context(), "test", "UPDATE version SET n = n WHERE name = ''"), "the check": database.Check(t.Context()),
	} {
		if relay.KindOf(err) != relay.KindUnavailable || !db.IsSchemaMissing(err) || !strings.Contains(err.Error(), "emptied") {
			t.Errorf("error of %s = %v, want an emptied database", name, err)
		}
	}
	relaytest.NoError(t, database.Migrate(t.Context()))
	relaytest.NoError(t, database.Check(t.Context()))
}
