package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// TestErrorsNameTheNextStep runs a command without a gateway, and with a token that the
// gateway refuses.
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
		{"export, no gateway", Export{Flags: admin(stopped.URL)}.Run, "no gateway answers at " + stopped.URL + ": start it, or name its URL with --server: "},
		{"healthcheck, no gateway", Healthcheck{Server: stopped.URL}.Run, "no gateway answers at " + stopped.URL + ": start it, or name its URL with --server: "},
		{"export, a wrong token", Export{Flags: admin(refusing.URL)}.Run, "the export: 401 Unauthorized: the gateway at " + refusing.URL + " has another admin token: give its token with --admin-token, or run the command with its settings and data directory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.run(Environment{Context: t.Context(), Variables: []string{"PENSTOCK_DATA_DIR=" + t.TempDir()}, Stdout: io.Discard, Stderr: io.Discard})
			if err == nil {
				t.Fatal("the command succeeded")
			}
			relaytest.Equal(t, "the beginning of the error", err.Error()[:min(len(tc.want), len(err.Error()))], tc.want)
			if strings.Contains(err.Error(), "a token of sixteen") {
				t.Error("the error shows the token")
			}
		})
	}
}
