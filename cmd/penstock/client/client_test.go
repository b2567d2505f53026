package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// TestErrorsNameTheNextStep runs commands without a gateway, and with an invalid token.
func TestErrorsNameTheNextStep(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"message":"Unauthenticated."}`)
	}))
	defer refusing.Close()
	stopped := httptest.NewServer(http.NotFoundHandler())
	stopped.Close()
	admin := func(url string) Flags { return Flags{Server: url, AdminToken: "a token of sixteen"} }
	for _, tc := range []struct {
		name string
		run  func(Environment) error
		want string
	}{
		{"export without a gateway", Export{Flags: admin(stopped.URL)}.Run, "no gateway answers at " + stopped.URL + ": start it, or set its URL with --server: "},
		{"healthcheck without a gateway", Healthcheck{Server: stopped.URL}.Run, "no gateway answers at " + stopped.URL + ": start it, or set its URL with --server: "},
		{"export with a wrong token", Export{Flags: admin(refusing.URL)}.Run, "the export: 401 Unauthorized: the gateway at " + refusing.URL + " has another admin token: set --admin-token, or run the command with the settings and data directory of the gateway"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.run(Environment{Context: t.Context(), Variables: []string{"PENSTOCK_DATA_DIR=" + t.TempDir()}, Stdout: io.Discard, Stderr: io.Discard})
			if err == nil {
				t.Fatal("the command succeeded, want an error")
			}
			relaytest.Equal(t, "the beginning of the error", err.Error()[:min(len(tc.want), len(err.Error()))], tc.want)
			if strings.Contains(err.Error(), "a token of sixteen") {
				t.Errorf("error = %q, want no token in it", err)
			}
		})
	}
}

// TestErrorOfSeveralLinesIsPrintedInOneRow prints an error of a back end with line breaks and tabs,
// as PostgreSQL returns.
func TestErrorOfSeveralLinesIsPrintedInOneRow(t *testing.T) {
	t.Parallel()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			_, _ = io.WriteString(w, `{"data":[]}`)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"status":"not ready","backends":{"records":{"status":"down","note":"postgresql","error":"failed to connect:\n\tdb1: refused\n\tdb2: refused"},"queue":{"status":"ok"}}}`)
	}))
	defer gateway.Close()
	var output strings.Builder
	err := Status{Flags: Flags{Server: gateway.URL, AdminToken: "a token of sixteen"}}.
		Run(Environment{Context: t.Context(), Variables: []string{"PENSTOCK_DATA_DIR=" + t.TempDir()}, Stdout: &output, Stderr: io.Discard})
	relaytest.Equal(t, "the error", err.Error(), "the gateway is not ready")
	relaytest.Equal(t, "the output", output.String(), "not ready\n\n"+
		"BACK END  STATUS  NOTE\n"+
		"queue     ok      \n"+
		"records   down    postgresql: failed to connect: db1: refused db2: refused\n")
}
