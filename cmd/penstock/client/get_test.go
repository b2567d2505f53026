package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// fakeGateway starts a server that returns the answers of the admin API by path and query, and
// returns the environment of a command that calls the server.
func fakeGateway(t *testing.T, answers map[string]string) Environment {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.String()]
		if !known || r.Header.Get("Authorization") != "Bearer token-of-sixteen" {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"message":"Not found."}`
		}
		if !known && r.URL.Path != "/admin/decoders/d8" {
			answer = `{"message":"no answer for ` + r.URL.String() + `"}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return Environment{
		Context: t.Context(), Stderr: new(strings.Builder), Stdout: new(strings.Builder),
		Variables: []string{"PENSTOCK_SERVER=" + strings.TrimPrefix(server.URL, "http://"), "PENSTOCK_ADMIN_TOKEN=token-of-sixteen"},
	}
}

func TestRecordsAreListedAndShown(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"/admin/devices?limit=100":             `{"data":[{"id":"d1","account_name":"acme","identifier":"24e1","name":"Fridge","decoder_id":"em500","last_seen_at":null,"alarms":2}],"meta":{"next":"d1"}}`,
		"/admin/devices/d1?account=acme":       `{"data":{"id":"d1","sensors":[{"key":"t"}]}}`,
		"/admin/relays?limit=100&q=site":       `{"data":[{"id":"g1","account_name":"acme","kind":"geo","number":"44","action":"http_post","parameters":["https://a/","https://b/"]}],"meta":{"next":""}}`,
		"/admin/relays?limit=100":              `{"data":[{"id":"g1","kind":"geo"}],"meta":{"next":""}}`,
		"/admin/credit?account=acme&limit=100": `{"data":[{"sequence":2,"at":"2026-11-27T08:00:00Z","credits":-1,"balance":9,"reason":"sent","reference":"447"}],"meta":{"next":0}}`,
		"/admin/accounts?":                     `{"data":[]}`,
	}
	for _, tc := range []struct {
		name    string
		command Get
		want    string
		err     string
	}{
		{"devices", Get{Kind: "devices"}, "ID  ACCOUNT NAME  IDENTIFIER  NAME    DECODER ID  LAST SEEN AT  ALARMS\n" +
			"d1  acme          24e1        Fridge  em500       -             2\n", ""},
		{"a device", Get{Kind: "devices", ID: "d1", Account: "acme"}, "id: d1\nsensors:\n  - key: t\n", ""},
		{"a device as JSON", Get{Kind: "devices", ID: "d1", Account: "acme", Flags: Flags{JSON: true}}, `{"id":"d1","sensors":[{"key":"t"}]}` + "\n", ""},
		{"relays that match a text", Get{Kind: "relays", Query: "site"}, "ID  ACCOUNT NAME  KIND  NUMBER  ACTION     PARAMETERS\ng1  acme          geo   44      http_post  https://a/,https://b/\n", ""},
		{"a relay", Get{Kind: "relays", ID: "g1"}, "id: g1\nkind: geo\n", ""},
		{"an unknown relay", Get{Kind: "relays", ID: "g2"}, "", "get relays: g2 is not among the first 1 records"},
		{"the changes of credit", Get{Kind: "credit", ID: "acme"}, "SEQUENCE  AT                    CREDITS  BALANCE  REASON  REFERENCE\n2         2026-11-27T08:00:00Z  -1       9        sent    447\n", ""},
		{"no accounts", Get{Kind: "accounts"}, "no accounts\n", ""},
		{"rules in a state", Get{Kind: "rules", State: "raised"}, "", "get rules does not support --state"},
		{"an unknown decoder", Get{Kind: "decoders", ID: "d8"}, "", "get decoders d8: not found"},
		{"an unknown path", Get{Kind: "decoders", ID: "d9"}, "", "get decoders d9: 404 Not Found: no answer for /admin/decoders/d9?"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := fakeGateway(t, answers)
			tc.command.Limit = 100
			err := tc.command.Run(w)
			relaytest.Equal(t, "the output", w.Stdout.(*strings.Builder).String(), tc.want)
			errText := ""
			if err != nil {
				errText = err.Error()
			}
			relaytest.Equal(t, "the error", errText, tc.err)
			if tc.name == "devices" {
				relaytest.Equal(t, "the hint", w.Stderr.(*strings.Builder).String(), "there are more than these 1 records: use --limit or filters\n")
			}
		})
	}
}

func TestCommandsPrintTheDataAsJSON(t *testing.T) {
	t.Parallel()
	w := fakeGateway(t, map[string]string{
		"/admin/users":           `{"data":[{"name":"alice","role":"admin"}]}`,
		"/admin/tokens?account=": `{"data":[]}`,
	})
	flags := Flags{JSON: true}
	relaytest.NoError(t, userListCommand{flags}.Run(w), tokenListCommand{Flags: flags}.Run(w))
	relaytest.Equal(t, "the output", w.Stdout.(*strings.Builder).String(), `[{"name":"alice","role":"admin"}]`+"\n[]\n")
}

func TestDurationMayBeInDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"2d": 48 * time.Hour, "90m": 90 * time.Minute, "0d": 0, "-1h": 0, "d": 0, "1w": 0} {
		var s daysDuration
		err := s.UnmarshalText([]byte(text))
		relaytest.Equal(t, "the duration "+text, time.Duration(s), want)
		relaytest.Equal(t, "whether "+text+" is refused", err != nil, want == 0)
	}
}

// TestReplayRefusesTwoStarts sets both flags for the start of the time range.
func TestReplayRefusesTwoStarts(t *testing.T) {
	t.Parallel()
	var replay replayDeliveriesCommand
	replay.From, replay.Last = "2026-11-01T00:00:00Z", daysDuration(time.Hour)
	err := replay.Run(Environment{Context: t.Context()})
	relaytest.Equal(t, "the error", err.Error(), "--last and --from cannot be used together")
}
