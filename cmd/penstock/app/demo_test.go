package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestDemoTokenFollowsItsFile changes the file of the demo token between starts.
func TestDemoTokenFollowsItsFile(t *testing.T) {
	t.Parallel()
	g := e2e.NewGateway(t, e2e.Embedded(), "", "PENSTOCK_INVENTORY=")
	file := filepath.Join(g.DataDir(), e2e.DemoTokenFile)
	read := func() string { return strings.TrimSpace(string(relaytest.Must(os.ReadFile(file))(t))) }
	restart := func() { relaytest.NoError(t, g.Stop()); g.Run() }
	write := func(text string) { relaytest.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	checkToken := func(name, token string, want bool) {
		t.Helper()
		relaytest.Equal(t, name+": whether the token is accepted", g.WithToken(token).Get("/iot/devices").Status == 200, want)
		relaytest.Equal(t, name+": whether the SOAP password is accepted", strings.Contains(soapAnswer(g, token), "unknown username or password"), !want)
	}
	g.Run()
	firstToken := read()
	checkToken("after the first start", firstToken, true)

	restart()
	relaytest.Equal(t, "the token after a restart", read(), firstToken)
	checkToken("after a restart", firstToken, true)

	relaytest.NoError(t, os.Remove(file))
	restart()
	secondToken := read()
	checkToken("the file was removed: the old token", firstToken, false)
	checkToken("the file was removed: the new token", secondToken, true)

	write("\n")
	restart()
	thirdToken := read()
	checkToken("the file was emptied: the old token", secondToken, false)
	checkToken("the file was emptied: the new token", thirdToken, true)

	write("a-token-of-my-own\n")
	restart()
	checkToken("the file was changed: the old token", thirdToken, false)
	checkToken("the file was changed: the new token", "a-token-of-my-own", true)
	g.WithToken("a-token-of-my-own").Get("/iot/decoders").Mentions(t, 200, "demo-cayenne")

	write("short")
	relaytest.NoError(t, g.Stop())
	if _, err := g.Open(); err == nil || !strings.Contains(err.Error(), file+": expected at least 16 characters, got 5") {
		t.Errorf("a short token: error = %v, want a minimum of 16 characters", err)
	}

	relaytest.NoError(t, os.Remove(file))
	g.Env = e2e.OverrideSettings(g.Env, []string{"PENSTOCK_LISTEN=0.0.0.0:0"})
	g.Run()
	checkToken("on a public address, without the file", "a-token-of-my-own", false)
}

// soapAnswer requests SoapSendSms with the user name of the demo account and a password, and returns
// the answer.
func soapAnswer(g *e2e.Gateway, password string) string {
	return g.WithToken("").With("Content-Type", "text/xml").Post("/soap", `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header><auth xmlns="urn:penstock:messaging"><username>demo</username><password>`+
		password+`</password></auth></s:Header><s:Body><SoapSendSms xmlns="urn:penstock:messaging"/></s:Body></s:Envelope>`).Body
}
