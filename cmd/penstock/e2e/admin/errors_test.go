package admin

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestWrongMasterKeyIsReported starts a gateway with another master key than the key that its database
// was used with. /readyz reports the setting to correct, and requests that need the keys are answered
// 503.
func TestWrongMasterKeyIsReported(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "ledgers.yaml", "CALLBACK", "https://127.0.0.1:9"), "PENSTOCK_LEDGER_MASTER_KEY=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	createToken := func() e2e.Response { return g.WithToken("acme-all-0123456").Post("/ledgers/assets/tokens", `{}`) }
	createToken().Mentions(t, 200)
	g.AwaitProcessed()
	relaytest.NoError(t, g.Stop())
	g.Env = e2e.OverrideSettings(g.Env, []string{"PENSTOCK_LEDGER_MASTER_KEY=HxwdHhscGRoYFRYXFBESExAPDg0MCwoJCAcGBQQDAgE="})
	g.Run()
	relaytest.Eventually(t, "the back end is down", func() (any, bool) {
		resp := g.WithToken("").Get("/readyz")
		return resp, resp.Status == 503 && strings.Contains(resp.Body, "set ledger.master_key")
	})
	if resp := createToken(); resp.Status != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("create a token: %d %s, want 503 and Retry-After", resp.Status, resp.Body)
	}
	if resp := g.WithToken("acme-all-0123456").Get("/ledgers"); resp.Status >= 500 {
		t.Errorf("list the ledgers: %d %s, want no server error", resp.Status, resp.Body)
	}
}

// TestCallbackErrorsContainNoInternalText sets callback URLs that cannot be reached.
func TestCallbackErrorsContainNoInternalText(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "inventory.yaml"))
	for url, want := range map[string]string{
		"https://127.0.0.1:1/hook":     "connection refused",
		"https://nowhere.invalid/hook": "",
		"https://192.168.0.1/hook":     "the address is not public",
	} {
		resp := e2e.CustomerOf(g).Do("PUT", "/v3/mno/callback", `{"callback_url":"`+url+`"}`)
		resp.Mentions(t, 422, "The callback url must be reachable: "+want)
		for _, internal := range []string{"dial", "lookup", ":53", ":1:", "192.168.0.1"} {
			if strings.Contains(resp.Body, internal) {
				t.Errorf("%s: answer = %s, want no %q in it", url, resp.Body, internal)
			}
		}
	}
}

// TestDemoIsRevokedOnAPublicAddress opens the data directory of a demo on a public address. The token and
// the password of the demo are refused, even after a return to a private address.
func TestDemoIsRevokedOnAPublicAddress(t *testing.T) {
	t.Parallel()
	g := e2e.NewGateway(t, e2e.Embedded(), "", "PENSTOCK_INVENTORY=")
	g.Run()
	file := filepath.Join(g.DataDir(), e2e.DemoTokenFile)
	text, err := os.ReadFile(file)
	relaytest.NoError(t, err)
	token := strings.TrimSpace(string(text))
	g.WithToken(token).Get("/iot/devices").Mentions(t, 200)
	inventory := g.Admin().Get("/admin/inventory").Body
	for _, listen := range []string{"0.0.0.0:0", "127.0.0.1:0"} {
		relaytest.NoError(t, g.Stop())
		g.Env = e2e.OverrideSettings(g.Env, []string{"PENSTOCK_LISTEN=" + listen})
		g.Run()
		g.WithToken(token).Get("/iot/devices").Expect(t, 401, `{"message":"Unauthenticated."}`)
		g.WithToken("").With("Content-Type", "text/xml").Post("/soap", `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header><auth xmlns="urn:penstock:messaging"><username>demo</username><password>`+
			token+`</password></auth></s:Header><s:Body><SoapSendSms xmlns="urn:penstock:messaging"/></s:Body></s:Envelope>`).Mentions(t, 500, "unknown username or password")
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(g.Logs.String(), "were revoked, because the gateway listens on a public address") {
		t.Errorf("stat of the token file: error = %v, log = %s, want a deleted file and a log line", err, g.Logs.Tail(20))
	}
	g.Admin().Put("/admin/inventory", inventory).Mentions(t, 422, "expected a secret, or the mask of the stored one")
}

// TestSecretsAreSealed searches the files of the database for the secrets of an inventory.
func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), `accounts:
  - name: acme
    webhook_secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
    tokens: [{token: acme-token-0123456789, scopes: [webhook], source: hq, secret: a-secret-that-signs}]
`)
	g.Admin().Get("/admin/inventory").Mentions(t, 200, "masked:")
	relaytest.NoError(t, g.Stop())
	for _, name := range []string{"penstock.db", "penstock.db-wal"} {
		data, err := os.ReadFile(filepath.Join(g.DataDir(), name))
		if name == "penstock.db-wal" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		relaytest.NoError(t, err)
		for _, secret := range []string{"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "a-secret-that-signs", "acme-token-0123456789"} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s contains %s in clear text", name, secret)
			}
		}
	}
}
