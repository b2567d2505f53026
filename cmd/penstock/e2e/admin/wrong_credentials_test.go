package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestWrongCredentialsAreLimited sends wrong credentials to every interface, each from its own address,
// until the gateway answers 429. Another address may still use the valid credential.
func TestWrongCredentialsAreLimited(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "inventory.yaml")+`
  - name: soapy
    soap: {username: soapy, password: secret}
    tokens: [{token: soapy-token-0123456789, scopes: [webhook], source: soapy, secret: "a secret of the source"}]
`, "PENSTOCK_TRUSTED_PROXIES=127.0.0.0/8")
	envelope := func(password string) string {
		return `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header><auth xmlns="urn:penstock:messaging"><username>soapy</username><password>` + password +
			`</password></auth></s:Header><s:Body><SoapSendSms xmlns="urn:penstock:messaging"/></s:Body></s:Envelope>`
	}
	for i, tc := range []struct {
		name, method, path, header, scheme, valid, body, limited string
	}{
		{"REST v2", "GET", "/v2/sms-relay/geo", "X-Auth-Token", "", "acme-all-0123456", "", `{"message":"Too Many Attempts."}`},
		{"REST v3", "GET", "/v3/mno", "X-Auth-Token", "", "acme-all-0123456", "", `{"success":false,"message":"Too Many Attempts."}`},
		{"devices", "GET", "/iot/devices", "Authorization", "Bearer ", "acme-all-0123456", "", `{"message":"Too Many Attempts."}`},
		{"ledgers", "GET", "/ledgers", "Authorization", "Bearer ", "acme-all-0123456", "", `{"message":"Too Many Attempts."}`},
		{"webhooks", "POST", "/webhooks/lorawan", "Authorization", "Bearer ", "acme-hook-0123456", "{}", `{"message":"Too Many Attempts."}`},
		{"a source", "POST", "/webhooks/lorawan/soapy", "X-Dt-Signature", "", "", "{}", `{"message":"Too Many Attempts."}`},
		{"carriers", "POST", "/inbound/sms/json", "X-Auth-Token", "", "acme-all-0123456", "{}", `{"message":"Too Many Attempts."}`},
		{"call records", "POST", "/inbound/cdr/sip", "X-Auth-Token", "", "acme-all-0123456", "{}", `{"message":"Too Many Attempts."}`},
		{"the operator", "GET", "/admin/gateways", "Authorization", "Bearer ", e2e.AdminToken, "", `{"message":"Too Many Attempts."}`},
		{"SOAP", "POST", "/soap", "", "", "secret", "envelope", "Too Many Attempts."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			send := func(address, secret string) e2e.Response {
				c := g.WithToken("").With("X-Forwarded-For", address)
				body := tc.body
				if tc.header != "" {
					c = c.With(tc.header, tc.scheme+secret)
				} else {
					c, body = c.With("Content-Type", "text/xml"), envelope(secret)
				}
				return c.Do(tc.method, tc.path, body)
			}
			address, attempts := fmt.Sprintf("198.51.100.%d", i), 0
			resp := send(address, "guess")
			for ; resp.Status != 429 && attempts < 1000; attempts++ {
				if resp.Status == 200 {
					t.Fatalf("a wrong credential: %d %s, want an error", resp.Status, resp.Body)
				}
				resp = send(address, fmt.Sprint("guess", attempts))
			}
			if resp.Status != 429 || resp.Header.Get("Retry-After") == "" || !strings.Contains(resp.Body, tc.limited) {
				t.Errorf("after %d attempts: %d %v %s, want 429 and Retry-After", attempts, resp.Status, resp.Header, resp.Body)
			}
			if tc.valid == "" {
				return
			}
			if resp := send("203.0.113.1", tc.valid); resp.Status == 401 || resp.Status == 429 || strings.Contains(resp.Body, "Unauthenticated") {
				t.Errorf("the valid credential from another address: %d %s, want it accepted", resp.Status, resp.Body)
			}
		})
	}
	m := e2e.Metrics(t, g.WithToken("").Get("/metrics").Body)
	for surface, limited := range map[string]float64{"v2": 1, "v3": 1, "iot": 1, "ledgers": 1, "webhooks": 2, "inbound": 2, "admin": 1, "soap": 1} {
		wrong, got := m[`penstock_credentials_wrong_total{surface="`+surface+`"}`], m[`penstock_credentials_limited_total{surface="`+surface+`"}`]
		if wrong < 1 || got != limited {
			t.Errorf("%s: wrong credentials = %v, limited attempts = %v, want at least 1 and %v", surface, wrong, got, limited)
		}
	}
	for _, line := range []string{`msg="sign-in refused: wrong credential" request_id=`, `surface=soap address=198.51.100.9 account="SOAP username soapy"`, "address=198.51.100.1"} {
		relaytest.Eventually(t, "the log has "+line, func() (any, bool) { return g.Logs.Tail(20), strings.Contains(g.Logs.String(), line) })
	}
}
