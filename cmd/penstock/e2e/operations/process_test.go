package operations

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestProcess terminates and restarts the program in a process of its own.
func TestProcess(t *testing.T) {
	t.Parallel()
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		t.Run("SIGTERM lets requests and deliveries finish, and exits 0", func(t *testing.T) { testDrain(t, s) })
		t.Run("a restart keeps all data", func(t *testing.T) { testRestart(t, s) })
	})
}

func testDrain(t *testing.T, s *e2e.Site) {
	release := make(chan struct{})
	sink := e2e.NewSink(t, func(w http.ResponseWriter, _ e2e.SinkRequest, earlier int) {
		if earlier == 0 {
			<-release
		}
	})
	g := e2e.NewGateway(t, s, e2e.Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", s.Mailbox()))
	g.Spawn()
	g.WithToken("acme-all-0123456").PostInboundText("d1", "447800015555", "in flight")
	sink.Await(t, "/longer", 1)
	conn := relaytest.Must(net.Dial("tcp", strings.TrimPrefix(g.URL(), "http://")))(t)
	defer func() { _ = conn.Close() }()
	const body = `{"deviceId": "slow", "temperature": 1}`
	fmt.Fprintf(conn, "POST /webhooks/lorawan HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer acme-all-0123456\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:10])
	g.WithToken("").Get("/healthz").Expect(t, 200, `{"status": "alive"}`)

	code := make(chan int, 1)
	go func() { code <- g.Terminate() }()
	relaytest.Eventually(t, "the gateway drains", func() (any, bool) { return nil, strings.Contains(g.Logs.String(), "msg=draining") })
	_, _ = io.WriteString(conn, body[10:])
	_ = conn.SetReadDeadline(time.Now().Add(relaytest.Patience))
	statusLine := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, statusLine); err != nil || string(statusLine) != "HTTP/1.1 200" {
		t.Errorf("answer to a request in flight = %q, %v, want status 200", statusLine, err)
	}
	close(release)
	if exitCode := <-code; exitCode != 0 || !strings.Contains(g.Logs.String(), "msg=stopped") {
		t.Errorf("exit code = %d, want 0 and a log line that the gateway has stopped", exitCode)
	}
	g.Spawn()
	relaytest.Equal(t, "attempts", e2e.AttemptStatuses(g.AwaitDelivery("g-longer", "delivered")), "200")
	g.AwaitProcessed()
	relaytest.Equal(t, "the number of events of the frame in flight", len(g.Events("kind=uplink&q=slow")), 1)
}

func testRestart(t *testing.T, s *e2e.Site) {
	sink := e2e.NewSink(t, nil)
	g := e2e.NewGateway(t, s, `{"accounts": []}`, "PENSTOCK_ADMIN_TOKEN=")
	g.Spawn()
	token := readSecret(t, filepath.Join(g.DataDir(), e2e.AdminTokenFile))
	operator := g.WithToken(token)
	operator.Put("/admin/inventory", e2e.Fixture(t, "inventory.yaml")).Mentions(t, 200, "acme")
	operator.Put("/admin/inventory", e2e.Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", s.Mailbox())).Mentions(t, 200, "acme")
	acme := g.WithToken("acme-all-0123456")
	e2e.PostWebhook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(t, "chirpstack/up.json"))
	id := acme.AwaitDevice("70b3d57ed0001234")
	oldReadings := e2e.FormatReadings(acme.LatestReadings(id))
	g.Terminate()
	g.Spawn()
	relaytest.Equal(t, "the admin token", readSecret(t, filepath.Join(g.DataDir(), e2e.AdminTokenFile)), token)
	operator.Get("/admin/deliveries").Mentions(t, 200)
	relaytest.Equal(t, "the latest readings", e2e.FormatReadings(acme.LatestReadings(id)), oldReadings)
	e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up", e2e.LaterUplink(t, "70b3d57ed0001234"))
	if got := acme.Readings(id, ""); len(got) != 4 {
		t.Errorf("readings = %s, want 4", e2e.FormatReadings(got))
	}
	acme.PostInboundText("s1", "447800015555", "after the restart")
	e2e.SameValues(t, sink.Await(t, "/longer", 1).Query, map[string]string{"m": "after the restart"})
}

// readSecret reads a file that only its owner may read.
func readSecret(t *testing.T, path string) string {
	t.Helper()
	info := relaytest.Must(os.Stat(path))(t)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode of %s = %s, want 0600", path, info.Mode())
	}
	return strings.TrimSpace(string(relaytest.Must(os.ReadFile(path))(t)))
}

// TestStartWithoutConfiguration starts the program without configuration.
func TestStartWithoutConfiguration(t *testing.T) {
	t.Parallel()
	g := e2e.NewGateway(t, e2e.Embedded(), "", "PENSTOCK_ADMIN_TOKEN=", "PENSTOCK_INVENTORY=", "PENSTOCK_EGRESS_ALLOW=")
	g.Spawn()
	path := filepath.Join(g.DataDir(), e2e.DemoTokenFile)
	demo := g.WithToken(readSecret(t, path))
	t.Run("the log names the files of the tokens, but not the tokens", func(t *testing.T) {
		log := g.Logs.String()
		if !strings.Contains(log, path) || !strings.Contains(log, filepath.Join(g.DataDir(), e2e.AdminTokenFile)) || strings.Contains(log, readSecret(t, path)) {
			t.Errorf("log = %s\nwant the paths of the files, but no token", log)
		}
	})
	t.Run("the demo account accepts a ChirpStack frame", func(t *testing.T) {
		body := e2e.Fixture(t, "chirpstack/up.json", "A2cBEARoeQ==", "AWcBEAJoeQRzJ5k=") // temperature, humidity, pressure
		e2e.PostWebhook(t, demo, "/webhooks/lorawan?decoder_id=demo-cayenne&event=up", body)
		g.T = t
		id := demo.AwaitDevice("70b3d57ed0001234")
		var list struct{ Data []e2e.Reading }
		relaytest.Eventually(t, "the readings of the device", func() (any, bool) {
			demo.Get("/iot/devices/"+id+"/readings/latest").Decode(t, &list)
			return list.Data, len(list.Data) == 3
		})
		relaytest.Equal(t, "latest", e2e.FormatReadings(list.Data),
			"barometric_pressure_4=1013.7@2026-03-01 10:15:30 relative_humidity_2=60.5@2026-03-01 10:15:30 temperature_1=27.2@2026-03-01 10:15:30")
	})
	t.Run("the demo account's mail goes to the sink", func(t *testing.T) {
		demo.PostInboundText("demo-1", "447860000001", "hello demo")
		g.AwaitMail("ops@example.com", "hello demo")
	})
	t.Run("a restart creates no second demo account", func(t *testing.T) {
		g.Terminate()
		g.Spawn()
		demo.Get("/iot/decoders").Mentions(t, 200, "demo-cayenne", "demo-parking", "demo-json")
	})
}
