package worker

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/relaytest"
)

//go:embed testdata/verify.cjs
var verifyScript string

// modules returns the folder of the npm packages that deploy/test-deps.sh installs.
func modules(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".tools", "node", "node_modules"))
	relaytest.NoError(t, err)
	_, statErr := os.Stat(filepath.Join(dir, "standardwebhooks"))
	_, nodeErr := exec.LookPath("node")
	if statErr == nil && nodeErr == nil {
		return dir
	}
	const reason = "node and the npm package standardwebhooks are not installed (deploy/test-deps.sh does)"
	if os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
		t.Skip(reason)
	}
	t.Fatal(reason)
	return ""
}

// signedRequest is a request that an endpoint received, and the secret for its verification.
type signedRequest struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// The reference library for JavaScript verifies requests with the old secret and the new one
// during a rotation, and refuses changed requests.
func TestTheJavaScriptLibraryVerifiesSignatures(t *testing.T) {
	dir := modules(t)
	var got signedRequest
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		got = signedRequest{Body: body.String(), Headers: make(map[string]string)}
		for name := range r.Header {
			got.Headers[strings.ToLower(name)] = r.Header.Get(name)
		}
	}))
	t.Cleanup(s.Close)
	old, current := secret("the old secret, 24 bytes or more"), secret("the new secret, 24 bytes or more")
	var cases []signedRequest
	var want []string
	add := func(result, key string, change func(*signedRequest)) {
		c := got
		c.Secret = key
		if change != nil {
			change(&c)
		}
		cases, want = append(cases, c), append(want, result)
	}
	for _, step := range []struct {
		name    string
		secrets []string
		old     string
		current string
	}{
		{"before the rotation", []string{old}, "ok", "refused"},
		{"during the rotation", []string{current, old}, "ok", "ok"},
		{"after the rotation", []string{current}, "refused", "ok"},
	} {
		r := newWorker(t, Deps{Secrets: secrets(step.secrets...)}).Send(t.Context(), post(s.URL))
		relaytest.Equal(t, step.name+": the verdict", r.Verdict, delivery.Verdict{Class: delivery.Delivered})
		add(step.old, old, nil)
		add(step.current, current, nil)
		add("refused", step.secrets[0], func(c *signedRequest) { c.Body += "!" })
		add("refused", secret("nobody's secret of 24 bytes..."), nil)
	}
	relaytest.Equal(t, "the library's results", verify(t, dir, cases), want)
}

func verify(t *testing.T, dir string, cases []signedRequest) (results []string) {
	t.Helper()
	input := relaytest.Must(json.Marshal(cases))(t)
	cmd := exec.Command("node", "-e", verifyScript)
	cmd.Env = append(os.Environ(), "NODE_PATH="+dir)
	cmd.Stdin = bytes.NewReader(input)
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v: %s", err, output)
	}
	if err := json.Unmarshal(output, &results); err != nil {
		t.Fatalf("node: %v in %s", err, output)
	}
	return results
}
