package app

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
)

// TestProcess runs the program in a process of its own.
func TestProcess(t *testing.T) {
	t.Parallel()
	onEverySite(t, func(t *testing.T, s *site) {
		t.Run("SIGTERM lets what is under way finish, and exits 0", func(t *testing.T) { testDrain(t, s) })
		t.Run("a restart finds everything", func(t *testing.T) { testRestart(t, s) })
	})
}

func testDrain(t *testing.T, s *site) {
	release := make(chan struct{})
	k := newSink(t, func(w http.ResponseWriter, _ hit, before int) {
		if before == 0 {
			<-release
		}
	})
	g := newGateway(t, s, fixture(t, "relays.yaml", "SINK", k.url, "MAILBOX", s.mailbox()))
	g.spawn()
	g.as("acme-all-0123456").text("d1", "447800015555", "under way")
	k.await(t, "/longer", 1)
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	const body = `{"deviceId": "slow", "temperature": 1}`
	fmt.Fprintf(conn, "POST /webhooks/lorawan HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer acme-all-0123456\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:10])
	g.as("").get("/healthz").is(t, 200, `{"status": "alive"}`)

	code := make(chan int, 1)
	go func() { code <- g.terminate() }()
	eventually(t, "it drains", func() (any, bool) { return nil, strings.Contains(g.logs.String(), "msg=draining") })
	_, _ = io.WriteString(conn, body[10:])
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	first := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, first); err != nil || string(first) != "HTTP/1.1 200" {
		t.Errorf("a request that was under way got %q %v", first, err)
	}
	close(release)
	if n := <-code; n != 0 || !strings.Contains(g.logs.String(), "msg=stopped") {
		t.Errorf("exit code %d, want 0 and word that it stopped", n)
	}
	g.spawn()
	same(t, "attempts", attempted(g.reach("g-longer", "delivered")), "200")
	g.settled()
	if set := g.events("kind=uplink&q=slow"); len(set) != 1 {
		t.Errorf("the frame under way: %+v", set)
	}
}

func testRestart(t *testing.T, s *site) {
	k := newSink(t, nil)
	g := newGateway(t, s, `{"accounts": []}`, "PENSTOCK_ADMIN_TOKEN=")
	g.spawn()
	token := readSecret(t, filepath.Join(g.data(), adminTokenFile))
	operator := g.as(token)
	operator.put("/admin/inventory", fixture(t, "inventory.yaml")).mentions(t, 200, "acme")
	operator.put("/admin/inventory", fixture(t, "relays.yaml", "SINK", k.url, "MAILBOX", s.mailbox())).mentions(t, 200, "acme")
	acme := g.as("acme-all-0123456")
	hook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", fixture(t, "chirpstack/up.json"))
	id := acme.device("70b3d57ed0001234")
	before := short(acme.latest(id))
	g.terminate()
	g.spawn()
	same(t, "the admin token", readSecret(t, filepath.Join(g.data(), adminTokenFile)), token)
	operator.get("/admin/deliveries").mentions(t, 200)
	same(t, "the latest readings", short(acme.latest(id)), before)
	hook(t, acme, "/webhooks/lorawan?event=up", later(t, "70b3d57ed0001234"))
	if got := acme.readings(id, ""); len(got) != 4 {
		t.Errorf("readings: %s", short(got))
	}
	acme.text("s1", "447800015555", "after the restart")
	sameValues(t, k.await(t, "/longer", 1).query, map[string]string{"m": "after the restart"})
}

// readSecret reads a file that only its owner may read.
func readSecret(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("%s has the mode %s, want 0600", path, info.Mode())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// TestNothingConfigured starts the program as its first user does.
func TestNothingConfigured(t *testing.T) {
	t.Parallel()
	g := newGateway(t, &site{name: "embedded"}, "", "PENSTOCK_ADMIN_TOKEN=", "PENSTOCK_INVENTORY=", "PENSTOCK_EGRESS_ALLOW=")
	g.spawn()
	path := filepath.Join(g.data(), demoTokenFile)
	demo := g.as(readSecret(t, path))
	t.Run("it says where its tokens are, and not what they are", func(t *testing.T) {
		log := g.logs.String()
		if !strings.Contains(log, path) || !strings.Contains(log, filepath.Join(g.data(), adminTokenFile)) || strings.Contains(log, readSecret(t, path)) {
			t.Errorf("the log:\n%s", log)
		}
	})
	t.Run("the demo account takes a ChirpStack frame", func(t *testing.T) {
		body := fixture(t, "chirpstack/up.json", "A2cBEARoeQ==", "AWcBEAJoeQRzJ5k=") // temperature, humidity, pressure
		hook(t, demo, "/webhooks/lorawan?decoder_id=demo-cayenne&event=up", body)
		g.t = t
		id := demo.device("70b3d57ed0001234")
		var list struct{ Data []reading }
		eventually(t, "its readings", func() (any, bool) {
			demo.get("/iot/devices/"+id+"/readings/latest").into(t, &list)
			return list.Data, len(list.Data) == 3
		})
		same(t, "latest", short(list.Data),
			"barometric_pressure_4=1013.7@2026-03-01 10:15:30 relative_humidity_2=60.5@2026-03-01 10:15:30 temperature_1=27.2@2026-03-01 10:15:30")
	})
	t.Run("the demo account's mail goes to the sink", func(t *testing.T) {
		demo.text("demo-1", "447860000001", "hello demo")
		g.awaitMail("ops@example.com", "hello demo")
	})
	t.Run("a restart makes no second demo", func(t *testing.T) {
		g.terminate()
		g.spawn()
		demo.get("/iot/decoders").mentions(t, 200, "demo-cayenne", "demo-parking", "demo-json")
	})
}
