package contract

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// hostileTexts are values that mean something to a database, a log, a header, a file
// system, a template, a spreadsheet, a browser or a parser.
func hostileTexts() []string {
	return []string{
		`' OR '1'='1' --`, `"; DROP TABLE account; --`, `%' ESCAPE '\`, `\`, "$1", "a\r\nX-Injected: 1\r\n\r\nHTTP/1.1 200 OK", "line\ninjected level=ERROR msg=forged",
		"\x00", "../../../../etc/passwd", "%m%o%d%i%n", "{{.}}${7*7}#{7*7}", `=HYPERLINK("http://127.0.0.1/")`, `<img src=x onerror=alert(1)>`,
		"\u202e\u2028\ufeff", strings.Repeat("é", 3000),
	}
}

// hostileNumbers are JSON numbers that no type holds, or that take long to read.
func hostileNumbers() []string {
	return []string{"-1", "1e999999999", "-1e-999999999", "18446744073709551616", "9007199254740993", strings.Repeat("9", 100_000), "0." + strings.Repeat("3", 100_000)}
}

// TestHostileValuesReachNothing sends every request of the contract with each of its
// values replaced by hostile ones, in the body, the query and the path. None is
// answered as a fault of the gateway, and none reaches a header, the log, a page or
// what another request reads. Each value is replaced by two or three of them, in turns;
// by all in a soak.
func TestHostileValuesReachNothing(t *testing.T) {
	t.Parallel()
	doc := contract(t)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	all := samples(fillWithSamples(g))
	sent := 0
	turns := &hostileValues{all: e2e.Soak()}
	for _, s := range all {
		owner, _ := s.owner(g)
		for _, one := range turns.of(doc, s) {
			a, err := one.trySend(owner)
			if sent++; err != nil {
				continue // no URL can be made of it
			}
			checkHarmless(t, one, a)
		}
	}
	g.AwaitProcessed()
	for _, line := range strings.Split(strings.TrimSpace(g.Logs.String()), "\n") {
		if !strings.HasPrefix(line, "time=") {
			t.Errorf("a line of the log is not the program's: %.300q", line)
		}
	}
	g.AwaitReady()
	g.As("acme-all-0123456").Get("/iot/devices").Mentions(t, 200, "shed")
	g.Admin().Get("/admin/inventory").Mentions(t, 200, `"acme"`)
	t.Logf("%d requests", sent)
}

// TestOnlyPublicOperationsTakeNoToken lists the operations without 401: those for which
// TestTrafficKeepsTheContract tries no missing and no unknown token.
func TestOnlyPublicOperationsTakeNoToken(t *testing.T) {
	t.Parallel()
	var open []string
	for op := range operations(contract(t)) {
		if op.Responses.Value("401") == nil {
			open = append(open, op.method+" "+op.path)
		}
	}
	slices.Sort(open)
	want := []string{
		"GET /", "GET /admin/oidc", "GET /admin/oidc/callback", "GET /admin/oidc/start", // the way to a session
		"GET /console", "GET /console/{file}", "GET /console/{folder}/{file}", "GET /docs", "GET /docs/reference.js", "GET /healthz", "GET /metrics", "GET /openapi.json", "GET /readyz",
		"GET /soap", "GET /t/{token}",
		"OPTIONS /webhooks/community", "OPTIONS /webhooks/community/{rest}", "OPTIONS /webhooks/generic", "OPTIONS /webhooks/generic/{deviceId}",
		"OPTIONS /webhooks/lorawan", "OPTIONS /webhooks/lorawan/{rest}", "OPTIONS /webhooks/lpwan", "OPTIONS /webhooks/lpwan/{rest}",
		"OPTIONS /webhooks/sensor-vendor", "OPTIONS /webhooks/sensor-vendor/{rest}",
		"POST /soap", // the login is in the envelope
	}
	if !slices.Equal(open, want) {
		t.Errorf("operations that take no token:\n%s\nwant\n%s", strings.Join(open, "\n"), strings.Join(want, "\n"))
	}
}

// checkHarmless checks an answer to a hostile request.
func checkHarmless(t *testing.T, s sample, a e2e.Response) {
	t.Helper()
	if a.Status >= 500 && s.operation != "soapRequest" { // a SOAP Fault is a 500
		t.Errorf("%s %.200s: %d %.300s", a.Request, s.body, a.Status, a.Body)
	}
	if a.Header.Get("X-Injected") != "" {
		t.Errorf("%.300s: a header was injected: %v", a.Request, a.Header)
	}
	if strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") && strings.Contains(a.Body, "<img src=x") {
		t.Errorf("%.300s: a page has another's element: %.300s", a.Request, a.Body)
	}
	for _, leak := range []string{"SQLITE", "SQLSTATE", "syntax error", "root:x:0", "goroutine ", "runtime error"} {
		if strings.Contains(a.Body, leak) && !strings.Contains(s.body+s.target, leak) && !isReference(s) {
			t.Errorf("%.300s %.200s: the answer tells of the inside: %.300s", a.Request, s.body, a.Body)
		}
	}
}

// isReference reports whether an answer is documentation or metrics, which may use such
// words.
func isReference(s sample) bool {
	return slices.ContainsFunc([]string{"/docs", "/openapi", "/console", "/metrics", "/soap"}, func(p string) bool { return strings.HasPrefix(s.target, p) })
}

// trySend is send for a target that may be no URL.
func (s sample) trySend(c e2e.Client) (e2e.Response, error) {
	return c.With("Content-Type", s.kind).Try(s.method, s.target, s.body)
}

// jsonValue finds the texts and numbers of a JSON body that are not names.
var jsonValue = regexp.MustCompile(`([:\[,]\s*)("(?:[^"\\]|\\.)*"|-?\d[0-9.eE+-]*)(\s*[,}\]])`)

// hostileValues takes hostile values in turns.
type hostileValues struct {
	all bool
	n   int
}

// some returns the next few of a list.
func (t *hostileValues) some(list []string, few int) []string {
	if t.all {
		return list
	}
	t.n += few
	var out []string
	for i := range few {
		out = append(out, list[(t.n+i)%len(list)])
	}
	return out
}

// of returns a request with each of its values replaced, and with bodies that nest
// without end.
func (t *hostileValues) of(doc *openapi3.T, s sample) []sample {
	return slices.Concat(t.values(s), t.bodies(s), t.query(s), t.path(doc, s))
}

// values replaces the values of a JSON body.
func (t *hostileValues) values(s sample) (all []sample) {
	if !strings.HasPrefix(s.kind, "application/json") {
		return nil
	}
	for _, at := range jsonValue.FindAllStringSubmatchIndex(s.body, -1) {
		for _, value := range slices.Concat(quoted(t.some(hostileTexts(), 2)), t.some(hostileNumbers(), 1)) {
			all = append(all, s.withBody(s.body[:at[4]]+value+s.body[at[5]:]))
		}
	}
	return all
}

// bodies replaces the whole body.
func (t *hostileValues) bodies(s sample) (all []sample) {
	if s.method == "GET" || s.method == "DELETE" || s.body == "" {
		return nil
	}
	for _, body := range t.some([]string{
		strings.Repeat("[", 400_000), strings.Repeat(`{"a":`, 150_000) + "1" + strings.Repeat("}", 150_000), strings.Repeat("<a>", 200_000),
		strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000), `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}", "\xff\xfe{}", `{"a":"\ud800"}`,
	}, 2) {
		all = append(all, s.withBody(body))
	}
	return all
}

// query replaces the parameters of the query.
func (t *hostileValues) query(s sample) (all []sample) {
	path, query, _ := strings.Cut(s.target, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range t.some(hostileTexts(), 3) {
			changed := maps.Clone(values)
			changed[name] = []string{value}
			all = append(all, s.withTarget(path+"?"+changed.Encode()))
		}
	}
	return all
}

// path replaces the parameters of the path.
func (t *hostileValues) path(doc *openapi3.T, s sample) (all []sample) {
	path, query, _ := strings.Cut(s.target, "?")
	segments := strings.Split(path, "/")
	for n, name := range strings.Split(operation(doc, s.operation).path, "/") {
		if !strings.HasPrefix(name, "{") || n >= len(segments) {
			continue
		}
		for _, value := range t.some(hostileTexts(), 3) {
			changed := slices.Clone(segments)
			changed[n] = url.PathEscape(value)
			all = append(all, s.withTarget(strings.Join(changed, "/")+strings.TrimSuffix("?"+query, "?")))
		}
	}
	return all
}

func (s sample) withBody(body string) sample { s.body = body; return s }

func (s sample) withTarget(target string) sample { s.target = target; return s }

// quoted returns texts as JSON strings, but for what JSON has no need to escape.
func quoted(texts []string) []string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", `\r`, "\n", `\n`, "\x00", `\u0000`)
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = `"` + escape.Replace(text) + `"`
	}
	return out
}
