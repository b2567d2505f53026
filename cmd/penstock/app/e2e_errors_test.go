package app

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnotherMasterKey starts a gateway on a database whose keys another master
// key wraps: /readyz says so and how to mend it, and what needs the keys is
// answered as a back end that is down.
func TestAnotherMasterKey(t *testing.T) {
	t.Parallel()
	g := start(t, &site{name: "embedded"}, fixture(t, "ledgers.yaml", "CALLBACK", "https://127.0.0.1:9"), "PENSTOCK_LEDGER_MASTER_KEY=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	issue := func() answer { return g.as("acme-all-0123456").post("/ledgers/assets/tokens", `{}`) }
	issue().mentions(t, 200)
	g.settled()
	must(t, g.stop())
	g.env = override(g.env, []string{"PENSTOCK_LEDGER_MASTER_KEY=HxwdHhscGRoYFRYXFBESExAPDg0MCwoJCAcGBQQDAgE="})
	g.run()
	eventually(t, "the back end is down", func() (any, bool) {
		a := g.as("").get("/readyz")
		return a, a.status == 503 && strings.Contains(a.body, "set ledger.master_key")
	})
	if a := issue(); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := g.as("acme-all-0123456").get("/ledgers"); a.status >= 500 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestCallbackErrorsTellNothingInternal names callbacks that cannot be reached.
func TestCallbackErrorsTellNothingInternal(t *testing.T) {
	t.Parallel()
	g := start(t, &site{name: "embedded"}, fixture(t, "inventory.yaml"))
	for url, want := range map[string]string{
		"https://127.0.0.1:1/hook":     "it refuses connections",
		"https://nowhere.invalid/hook": "its host name ",
		"https://192.168.0.1/hook":     "its address is not a public one",
	} {
		a := g.as("").with("X-Auth-Token", "acme-all-0123456").do("PUT", "/v3/mno/callback", `{"callback_url":"`+url+`"}`)
		a.mentions(t, 422, "The callback url must be reachable: "+want)
		for _, internal := range []string{"dial", "lookup", ":53", ":1:", "192.168.0.1"} {
			if strings.Contains(a.body, internal) {
				t.Errorf("%s: %s", url, a.body)
			}
		}
	}
}

// TestADemoDoesNotGoPublic opens a demo's data directory on a public address: its token
// and password are worth nothing there, and not afterwards either.
func TestADemoDoesNotGoPublic(t *testing.T) {
	t.Parallel()
	g := newGateway(t, &site{name: "embedded"}, "", "PENSTOCK_INVENTORY=")
	g.run()
	file := filepath.Join(g.data(), demoTokenFile)
	b, err := os.ReadFile(file)
	must(t, err)
	token := strings.TrimSpace(string(b))
	g.as(token).get("/iot/devices").mentions(t, 200)
	inventory := g.admin().get("/admin/inventory").body
	for _, listen := range []string{"0.0.0.0:0", "127.0.0.1:0"} {
		must(t, g.stop())
		g.env = override(g.env, []string{"PENSTOCK_LISTEN=" + listen})
		g.run()
		g.as(token).get("/iot/devices").is(t, 401, `{"message":"Unauthenticated."}`)
		g.as("").with("Content-Type", "text/xml").post("/soap", `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header><auth xmlns="urn:penstock:messaging"><username>demo</username><password>`+
			token+`</password></auth></s:Header><s:Body><SoapSendSms xmlns="urn:penstock:messaging"/></s:Body></s:Envelope>`).mentions(t, 500, "unknown username or password")
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(g.logs.String(), "were revoked, because the gateway listens on a public address") {
		t.Errorf("%v; %s", err, g.logs.tail(20))
	}
	g.admin().put("/admin/inventory", inventory).mentions(t, 422, "this mask hides no known secret")
}

// TestSecretsAreSealed looks for secrets of an inventory in the bytes of its database.
func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()
	g := start(t, &site{name: "embedded"}, `accounts:
  - name: acme
    webhook_secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
    tokens: [{token: acme-token-0123456789, scopes: [webhook], source: hq, secret: a-secret-that-signs}]
`)
	g.admin().get("/admin/inventory").mentions(t, 200, "masked:")
	must(t, g.stop())
	for _, name := range []string{"penstock.db", "penstock.db-wal"} {
		b, err := os.ReadFile(filepath.Join(g.data(), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must(t, err)
		for _, secret := range []string{"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "a-secret-that-signs", "acme-token-0123456789"} {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s shows %s", name, secret)
			}
		}
	}
}
