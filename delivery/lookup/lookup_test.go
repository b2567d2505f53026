package lookup

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/relaytest"
)

var (
	_ lookup.Backend = (*Simulator)(nil)
	_ lookup.Backend = (*HTTP)(nil)
)

// table is a Table of networks, or of an error.
type table struct {
	networks []lookup.Network
	err      error
}

func (t table) Networks(context.Context) ([]lookup.Network, error) { return t.networks, t.err }

func TestTheSimulatorSelectsResultsByPrefixAndLastDigits(t *testing.T) {
	s := NewSimulator(table{networks: []lookup.Network{
		{Prefix: "447", MCC: "234", MNC: "15", Name: "Example", Country: "United Kingdom"},
		{Prefix: "44779", MCC: "234", MNC: "30", Name: "Other", Country: "United Kingdom"},
		{Prefix: "49", MCC: "262", MNC: "02", Name: "Alone", Country: "Germany"},
	}})
	for name, tc := range map[string]struct {
		number relay.MSISDN
		want   string
	}{
		"a number of a network":                {"447700900123", "0 234-15 Example 234157700900123 "},
		"the longest prefix applies":           {"447790900123", "0 234-30 Other 234307790900123 "},
		"a number without a prefix is unknown": {"33612345678", "2 -   "},
		"9001: unknown subscriber":             {"447700909001", "2 -   "},
		"9002: absent":                         {"447700909002", "1 234-15 Example 234157700909002 "},
		"9003: the network does not answer":    {"447700909003", "3 -   "},
		"9005: ported to another network":      {"447700909005", "0 234-30 Other 234307700909005 ported"},
		"9005: ported without another network": {"4917000009005", "0 262-02 Alone 262027000009005 ported"},
		"9006: roaming":                        {"447700909006", "0 234-15 Example 234157700909006 roaming"},
		"9007: ported and roaming":             {"447700909007", "0 234-30 Other 234307700909007 portedroaming"},
		"a short number still has an IMSI":     {"4471234", "0 234-15 Example 234150004471234 "},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := s.Find(t.Context(), tc.number)
			got := fmt.Sprintf("%d %s-%s %s %s ", r.Code, r.MCC, r.MNC, r.Network, r.IMSI)
			if r.Ported {
				got += "ported"
			}
			if r.Roaming {
				got += "roaming"
			}
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the result", got, tc.want)
			relaytest.Equal(t, "the number of the result", r.Number, tc.number)
		})
	}
	_, err := s.Find(t.Context(), "447700909004")
	relaytest.Equal(t, "the kind of the error for 9004", relay.KindOf(err), relay.KindUnavailable)
	if _, err := NewSimulator(table{err: io.EOF}).Find(t.Context(), "447700900123"); err == nil {
		t.Error("Find returned no error without a table of networks")
	}
}

const fullResponse = `{"number":"447700900123","status":{"code":1,"description":"x"},"mcc":"234","mnc":"15","network":{"name":"Example","country":"UK","contact":"noc"},"imsi":"234150000000001","ported":true,"roaming":true}`

func TestResponsesAreConvertedToResults(t *testing.T) {
	want := lookup.Result{
		Number: "447700900123", Code: lookup.Absent, MCC: "234", MNC: "15", Network: "Example", Country: "UK", Contact: "noc",
		IMSI: "234150000000001", Ported: true, Roaming: true,
	}
	for name, tc := range map[string]struct {
		path, body string
		status     int
		valid      bool
	}{
		"a bare response":     {"/hlr", fullResponse, 200, true},
		"a response in data":  {"/hlr?n=%number", `{"data":` + fullResponse + `}`, 200, true},
		"an unknown code":     {"/hlr", `{"status":{"code":7}}`, 200, false},
		"no code":             {"/hlr", `{}`, 200, false},
		"not JSON":            {"/hlr", `<html>`, 200, false},
		"an internal error":   {"/hlr", fullResponse, 500, false},
		"a redirect":          {"/hlr", fullResponse, 302, false},
		"a response too long": {"/hlr", fullResponse + strings.Repeat(" ", 70<<10), 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			var uri, authorization string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				uri, authorization = r.RequestURI, r.Header.Get("Authorization")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			client := relaytest.Must(httpout.New(httpout.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}))(t)
			h := relaytest.Must(NewHTTP(client, server.URL+tc.path, "t0"))(t)
			r, err := h.Find(t.Context(), "447700900123")
			if tc.valid {
				relaytest.NoError(t, err)
				relaytest.Equal(t, "the result", r, want)
			} else {
				relaytest.Equal(t, "the kind of the error", relay.KindOf(err), relay.KindUnavailable)
			}
			target := map[bool]string{true: "/hlr?n=447700900123", false: "/hlr/447700900123"}[strings.Contains(tc.path, "?")]
			relaytest.Equal(t, "the request target", uri, target)
			relaytest.Equal(t, "Authorization", authorization, "Bearer t0")
		})
	}
}

func TestAnUnreachableHTTPBackEndIsUnavailable(t *testing.T) {
	client := relaytest.Must(httpout.New(httpout.Options{}))(t)
	h := relaytest.Must(NewHTTP(client, "http://127.0.0.1:9/", ""))(t)
	_, err := h.Find(t.Context(), "447700900123")
	relaytest.Equal(t, "the kind of the error", relay.KindOf(err), relay.KindUnavailable)
	for _, bad := range []string{"", "ftp://x/", "http://", "%"} {
		if _, err := NewHTTP(client, bad, ""); err == nil {
			t.Errorf("the URL %q was accepted", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(fullResponse))
	f.Add([]byte(`{"data":{"status":{"code":0}}}`))
	f.Add([]byte(`{"data":{"data":{}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := parse(body); err == nil && !r.Code.Known() {
			t.Errorf("the code %d is unknown", r.Code)
		}
	})
}
