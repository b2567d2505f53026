package sending

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// soapClients returns the interpreter and the script of third-party SOAP clients, by name. All scripts
// run the same steps.
func soapClients() map[string][]string {
	return map[string][]string{
		"zeep": {"/usr/bin/python3", "client.py"}, "PHP": {"php", "client.php"}, "node": {"node", "client.js"},
	}
}

// soapStep is a line that a script prints for a step: the code, the credits and the description in the
// answer, or the text of a Fault.
type soapStep struct {
	Step, ResponseCode, CreditsUsed, Description, Fault string
}

// soapSteps returns the steps that every script must print. Each step sends to two numbers.
func soapSteps() []soapStep {
	const ids = "Accepted. Message ids: "
	return []soapStep{
		{"text", "0", "2", ids, ""},
		{"later", "0", "4", ids, ""}, // 71 characters of UCS-2 are two parts
		{"binary", "0", "2", ids, ""},
		{"push", "0", "2", ids, ""},
		{"notification", "0", "2", ids, ""},
		{"soap12", "0", "2", ids, ""},
		{"stranger", "", "", "", "Unauthenticated: unknown username or password."},
		{"stranger12", "", "", "", "Unauthenticated: unknown username or password."},
		{"anonymous", "", "", "", "Unauthenticated: the header auth of the namespace urn:penstock:messaging is missing."},
		{"invalid", "3", "0", `destinationarray.number[0]: expected 7 to 15 digits, country code first, without a plus sign or leading zeros, got "0770" (byte `, ""},
	}
}

// runSOAPClient runs a client's script and returns its steps. If the client is missing, it fails the
// test, or skips the test if PENSTOCK_TEST_SKIP_REAL=1.
func runSOAPClient(t *testing.T, client []string, args ...string) []soapStep {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join(e2e.Root(t), ".tools", "node", "node_modules"))
	relaytest.NoError(t, err)
	script := filepath.Join(e2e.Root(t), "ingest", "soap", "testdata", client[1])
	cmd := exec.Command(client[0], append([]string{script}, args...)...)
	var stderr bytes.Buffer
	cmd.Env, cmd.Stderr = append(os.Environ(), "NODE_PATH="+modules), &stderr
	stdout, err := cmd.Output()
	if err != nil {
		if os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
			t.Skipf("skipped: %v, and PENSTOCK_TEST_SKIP_REAL=1: %s", err, stderr.String())
		}
		t.Fatalf("%v: %s\n%s\ndeploy/test-deps.sh installs the clients (PENSTOCK_TEST_SKIP_REAL=1 skips)", err, stderr.String(), stdout)
	}
	var steps []soapStep
	for line := range strings.Lines(string(stdout)) {
		var s soapStep
		relaytest.NoError(t, json.Unmarshal([]byte(line), &s))
		steps = append(steps, s)
	}
	return steps
}

// TestSOAPClients sends with third-party clients that read the WSDL, and checks the charges.
func TestSOAPClients(t *testing.T) {
	t.Parallel()
	addr := porttest.Address(t)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"), "PENSTOCK_LISTEN="+addr, "PENSTOCK_PUBLIC_URL=http://"+addr)
	acme := e2e.CustomerOf(g)
	credit := 1000
	for name, client := range soapClients() {
		t.Run(name, func(t *testing.T) {
			got := runSOAPClient(t, client, g.URL()+"/soap?wsdl", "acme", "secret")
			want := soapSteps()
			if len(got) != len(want) {
				t.Fatalf("number of steps = %d, want %d", len(got), len(want))
			}
			for i, w := range want {
				step := got[i]
				if strings.Contains(step.Description, w.Description) {
					step.Description = w.Description // without the ids
				}
				relaytest.Equal(t, "the step "+w.Step, step, w)
			}
			credit -= 14
			acme.Get("/v2/sms/credit").Expect(t, 200, fmt.Sprintf(`{"data":{"credit":%d}}`, credit))
		})
	}
}

func TestRefusedSOAPRequestsAreNotCharged(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), "accounts: [{name: acme, credit: 1, tokens: [{token: acme-token-0123456}], soap: {username: acme, password: secret}}]")
	customer := g.XAuth("acme-token-0123456")
	for _, tc := range []struct{ name, body, want string }{
		{"a text of 256 parts", strings.Replace(e2e.SOAPEnvelope("acme", "447700900123"), ">hi<", ">"+strings.Repeat("a", 255*153+1)+"<", 1), "<responsecode>3</responsecode><creditsused>0</creditsused><description>Invalid request: message: "},
		{"an originator that is too long", strings.Replace(e2e.SOAPEnvelope("acme", "447700900123"), "<message>", "<originator>far too long a name</originator><message>", 1), "<responsecode>3</responsecode><creditsused>0</creditsused><description>Invalid request: originator: "},
		{"a report to a link-local address", strings.Replace(e2e.SOAPEnvelope("acme", "447700900123"), "</messagetype>", "</messagetype><dlrep><callbackurl>http://169.254.169.254/</callbackurl><callbacktype>HTTPGET</callbacktype></dlrep>", 1), "<responsecode>3</responsecode><creditsused>0</creditsused><description>Invalid request: dlrep.callbackurl: The dlrep.callbackurl is refused"},
		{"more than the credit", strings.Replace(e2e.SOAPEnvelope("acme", "447700900123"), "</number>", "</number><number>447700900124</number>", 1), "<responsecode>2</responsecode><creditsused>0</creditsused><description>Insufficient credit.</description>"},
	} {
		g.WithToken("").With("Content-Type", e2e.SOAP11Type).Post("/soap", tc.body).Mentions(t, 200, tc.want)
		if resp := customer.Get("/v2/sms/credit"); resp.Body != `{"data":{"credit":1}}` {
			t.Errorf("%s: credit = %s, want 1", tc.name, resp.Body)
		}
	}
	g.WithToken("").With("Content-Type", e2e.SOAP11Type).Post("/soap", e2e.SOAPEnvelope("acme", "447700900123")).Mentions(t, 200, "<responsecode>0</responsecode><creditsused>1</creditsused>")
	customer.Get("/v2/sms/credit").Expect(t, 200, `{"data":{"credit":0}}`)
	g.Admin().Put("/admin/inventory", `{"accounts":[{"name":"acme","soap":{"username":"acme","password":"another"}}]}`).Mentions(t, 200, "acme")
	g.WithToken("").With("Content-Type", e2e.SOAP11Type).Post("/soap", e2e.SOAPEnvelope("acme", "447700900123")).Mentions(t, 500, "Unauthenticated: unknown username or password.")
	if logs := g.Logs.String(); strings.Contains(logs, "secret") || strings.Contains(logs, "447700900123") {
		t.Errorf("the log contains a password or a number: %s", logs)
	}
}
