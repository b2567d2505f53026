package gateways

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/relaytest"
)

// testStolenDatabase reads every text in the database, like a thief of a backup, and sends each text as a
// credential of every kind.
func testStolenDatabase(t *testing.T, s *e2e.Site) {
	inventory := e2e.Fixture(t, "contract.yaml", "http://127.0.0.1:9/in", "http://user:planted-relay@127.0.0.1:9/in", "https://example.com/callback", "https://example.com/callback?key=planted-callback")
	c := e2e.StartCluster(t, s, inventory, "PENSTOCK_TRUSTED_PROXIES=127.0.0.1", "PENSTOCK_DELIVERY_SCHEDULE=100ms")
	gatewayA, gatewayB := c.Gateways[0], c.Gateways[1]
	gatewayA.WithToken("acme-all-0123456").PostInboundText("planted", "447800055555", "hello")
	gatewayA.AwaitDelivery("g1", "dead")
	gatewayA.AddUser("anna", "admin", "")
	relaytest.Eventually(t, "every gateway is registered", func() (any, bool) {
		resp := gatewayA.Admin().Get("/admin/gateways")
		return resp.Body, resp.Status == http.StatusOK && strings.Count(resp.Body, `"node"`) == e2e.ClusterSize
	})
	values := valuesOf(t, gatewayB.Setting("PENSTOCK_DATABASE_URL"))
	if !values["anna"] {
		t.Fatal("the name of the user is not among the values: the database was not read")
	}
	for _, secret := range []string{"planted-relay", "planted-callback", "87654321", "12345678", "acme-all-0123456", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", e2e.UserPassword} {
		for text := range values {
			if strings.Contains(text, secret) {
				t.Errorf("the database contains %s: %.300q", secret, text)
			}
		}
	}
	n := 0
	for text := range values {
		n++
		thief := gatewayA.WithToken("").With("X-Forwarded-For", fmt.Sprintf("10.0.%d.%d", n/256, n%256)) // each text has its own address, because failed attempts of an address are limited
		bearer := "Bearer " + text
		keys := relaytest.Must(gateway.NewKeys([]string{text}))(t)
		for _, attempt := range []struct {
			kind, method, path, body string
			client                   e2e.Client
		}{
			{"the admin token", "POST", "/admin/users", `{"name":"thief","role":"admin","password":"correct horse battery"}`, thief.With("Authorization", bearer)},
			{"a session", "GET", "/admin/users", "", thief.With("Cookie", "penstock_session="+text)},
			{"a token of /v2", "GET", "/v2/sms/credit", "", thief.With("X-Auth-Token", text)},
			{"a token of /iot", "GET", "/iot/devices", "", thief.With("Authorization", bearer)},
			{"the gateways' bearer token", "GET", "/internal/events", "", thief.With("Authorization", bearer)},
			{"the gateways' key", "GET", "/internal/events", "", signedClient(thief, keys, "GET", "/internal/events", "")},
			{"the gateways' key to replay", "POST", "/internal/events/replay", `{"kind":"sms"}`, signedClient(thief, keys, "POST", "/internal/events/replay", `{"kind":"sms"}`)},
		} {
			var resp e2e.Response
			var err error
			relaytest.Eventually(t, "an answer other than 503", func() (any, bool) {
				resp, err = attempt.client.Try(attempt.method, attempt.path, attempt.body)
				return resp.Body, resp.Status != http.StatusServiceUnavailable
			})
			if err != nil && strings.Contains(err.Error(), "invalid header field value") {
				continue
			}
			relaytest.NoError(t, err)
			if resp.Status != http.StatusUnauthorized && resp.Status != http.StatusTooManyRequests {
				t.Errorf("%q as %s: %d %.200s, want 401 or 429", text, attempt.kind, resp.Status, resp.Body)
			}
		}
	}
	t.Logf("%d values", n)
}

// signedClient returns a client that sends a request with the signature of a gateway.
func signedClient(c e2e.Client, keys gateway.Keys, method, target, body string) e2e.Client {
	r := gateway.Request{Method: method, Target: target, Node: "thief", Actor: "thief", Role: "admin", Time: time.Now(), Body: []byte(body)}
	return c.With("X-Penstock-Gateway", r.Node).With("X-Penstock-Actor", r.Actor).With("X-Penstock-Role", r.Role).
		With("X-Penstock-Time", strconv.FormatInt(r.Time.Unix(), 10)).With("X-Penstock-Signature", hex.EncodeToString(keys.Sign(r)))
}

// valuesOf returns all texts in a database, including texts inside JSON.
func valuesOf(t *testing.T, databaseURL string) map[string]bool {
	t.Helper()
	database := dbtest.Open(t, db.Options{URL: databaseURL})
	tables := relaytest.Must(db.Values[string](t.Context(), database, "tables",
		"SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"))(t)
	texts := map[string]bool{}
	for _, table := range tables {
		rows := relaytest.Must(db.Values[string](t.Context(), database, table, `SELECT row_to_json(t)::text FROM "`+table+`" t`))(t)
		for _, row := range rows {
			addTexts(texts, row)
		}
	}
	return texts
}

// addTexts adds the texts in a JSON value, including texts inside texts that are JSON or hexadecimal.
func addTexts(texts map[string]bool, text string) {
	var v any
	if json.Unmarshal([]byte(text), &v) == nil {
		addValue(texts, v)
	}
}

func addValue(texts map[string]bool, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			addValue(texts, member)
		}
	case []any:
		for _, element := range v {
			addValue(texts, element)
		}
	case string:
		if digits, ok := strings.CutPrefix(v, `\x`); ok {
			if b, err := hex.DecodeString(digits); err == nil {
				addTexts(texts, string(b))
			}
		}
		if len(v) >= 4 && len(v) <= 1000 && strings.IndexFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
			texts[v] = true
		}
		addTexts(texts, v)
	}
}
