package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestTheFileHasTheDemoToken changes the file of the demo token between starts.
func TestTheFileHasTheDemoToken(t *testing.T) {
	t.Parallel()
	g := e2e.NewGateway(t, e2e.Embedded(), "", "PENSTOCK_INVENTORY=")
	file := filepath.Join(g.DataDir(), e2e.DemoTokenFile)
	read := func() string { return strings.TrimSpace(string(relaytest.Must(os.ReadFile(file))(t))) }
	restart := func() { relaytest.NoError(t, g.Stop()); g.Run() }
	write := func(text string) { relaytest.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	works := func(name, token string, want bool) {
		t.Helper()
		relaytest.Equal(t, name+": whether the token is accepted", g.As(token).Get("/iot/devices").Status == 200, want)
		relaytest.Equal(t, name+": whether the SOAP password is accepted", strings.Contains(soapAnswer(g, token), "unknown username or password"), !want)
	}
	g.Run()
	first := read()
	works("the first start", first, true)

	restart()
	relaytest.Equal(t, "the token after a restart", read(), first)
	works("a restart", first, true)

	relaytest.NoError(t, os.Remove(file))
	restart()
	second := read()
	works("the file was removed: the old token", first, false)
	works("the file was removed: the new token", second, true)

	write("\n")
	restart()
	third := read()
	works("the file was emptied: the old token", second, false)
	works("the file was emptied: the new token", third, true)

	write("a-token-of-my-own\n")
	restart()
	works("the file was changed: the old token", third, false)
	works("the file was changed: the new token", "a-token-of-my-own", true)
	g.As("a-token-of-my-own").Get("/iot/decoders").Mentions(t, 200, "demo-cayenne")

	write("short")
	relaytest.NoError(t, g.Stop())
	if _, err := g.Open(); err == nil || !strings.Contains(err.Error(), file+": expected at least 16 characters, got 5") {
		t.Errorf("a short token: the start returns %v", err)
	}

	relaytest.NoError(t, os.Remove(file))
	g.Env = e2e.OverrideSettings(g.Env, []string{"PENSTOCK_LISTEN=0.0.0.0:0"})
	g.Run()
	works("on a public address, without the file", "a-token-of-my-own", false)
}

// soapAnswer sends a message with the demo account's login.
func soapAnswer(g *e2e.Gateway, password string) string {
	return g.As("").With("Content-Type", "text/xml").Post("/soap", `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header><auth xmlns="urn:penstock:messaging"><username>demo</username><password>`+
		password+`</password></auth></s:Header><s:Body><SoapSendSms xmlns="urn:penstock:messaging"/></s:Body></s:Envelope>`).Body
}
