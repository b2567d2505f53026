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

// hostileTexts returns texts with a special meaning in a database, a log, a header, a file
// system, a template, a spreadsheet, a browser or a parser.
func hostileTexts() []string {
	return []string{
		`' OR '1'='1' --`, `"; DROP TABLE account; --`, `%' ESCAPE '\`, `\`, "$1", "a\r\nX-Injected: 1\r\n\r\nHTTP/1.1 200 OK", "line\ninjected level=ERROR msg=forged",
		"\x00", "../../../../etc/passwd", "%m%o%d%i%n", "{{.}}${7*7}#{7*7}", `=HYPERLINK("http://127.0.0.1/")`, `<img src=x onerror=alert(1)>`,
		"\u202e\u2028\ufeff", strings.Repeat("é", 3000),
	}
}

// hostileNumbers returns JSON numbers that are negative, lose precision, overflow or take long to parse.
func hostileNumbers() []string {
	return []string{"-1", "1e999999999", "-1e-999999999", "18446744073709551616", "9007199254740993", strings.Repeat("9", 100_000), "0." + strings.Repeat("3", 100_000)}
}

// TestHostileValuesAreHarmless sends the samples of the contract with hostile values in the body, the
// query and the path. No answer may be an internal error, and no hostile value may reach a header,
// the log or a page. Each value is replaced by two or three hostile values in turn; in a soak, by all
// hostile values.
func TestHostileValuesAreHarmless(t *testing.T) {
	t.Parallel()
	doc := contract(t)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	allSamples := samples(fillWithSamples(g))
	requestCount := 0
	values := &hostileValues{useAll: e2e.Soak()}
	for _, s := range allSamples {
		owner, _ := s.clients(g)
		for _, variant := range values.variants(doc, s) {
			resp, err := variant.trySend(owner)
			if requestCount++; err != nil {
				t.Errorf("%s %.100s: %v", variant.method, variant.target, err)
				continue
			}
			checkHarmless(t, variant, resp)
		}
	}
	g.AwaitProcessed()
	for _, line := range strings.Split(strings.TrimSpace(g.Logs.String()), "\n") {
		if !strings.HasPrefix(line, "time=") {
			t.Errorf("the log has an injected line: %.300q", line)
		}
	}
	g.AwaitReady()
	g.WithToken("acme-all-0123456").Get("/iot/devices").Mentions(t, 200, "shed")
	g.Admin().Get("/admin/inventory").Mentions(t, 200, `"acme"`)
	t.Logf("%d requests", requestCount)
}

// TestOnlyPublicOperationsTakeNoToken checks the list of operations without a 401 answer. For these,
// TestTrafficKeepsTheContract does not send missing and unknown tokens.
func TestOnlyPublicOperationsTakeNoToken(t *testing.T) {
	t.Parallel()
	var publicOperations []string
	for op := range operations(contract(t)) {
		if op.Responses.Value("401") == nil {
			publicOperations = append(publicOperations, op.method+" "+op.path)
		}
	}
	slices.Sort(publicOperations)
	want := []string{
		"GET /", "GET /admin/oidc", "GET /admin/oidc/callback", "GET /admin/oidc/start", // for signing in
		"GET /console", "GET /console/{file}", "GET /console/{folder}/{file}", "GET /docs", "GET /docs/reference.js", "GET /healthz", "GET /metrics", "GET /openapi.json", "GET /readyz",
		"GET /soap", "GET /t/{token}",
		"OPTIONS /webhooks/community", "OPTIONS /webhooks/community/{rest}", "OPTIONS /webhooks/generic", "OPTIONS /webhooks/generic/{deviceId}",
		"OPTIONS /webhooks/lorawan", "OPTIONS /webhooks/lorawan/{rest}", "OPTIONS /webhooks/lpwan", "OPTIONS /webhooks/lpwan/{rest}",
		"OPTIONS /webhooks/sensor-vendor", "OPTIONS /webhooks/sensor-vendor/{rest}",
		"POST /soap", // the login is in the envelope
	}
	if !slices.Equal(publicOperations, want) {
		t.Errorf("operations that take no token:\n%s\nwant\n%s", strings.Join(publicOperations, "\n"), strings.Join(want, "\n"))
	}
}

// checkHarmless checks that the answer to a hostile request has no internal error, no injected value
// and no internal text.
func checkHarmless(t *testing.T, s sample, resp e2e.Response) {
	t.Helper()
	if resp.Status >= 500 && s.operation != "soapRequest" { // a SOAP Fault is a 500
		t.Errorf("%s %.200s: %d %.300s", resp.Request, s.body, resp.Status, resp.Body)
	}
	if resp.Header.Get("X-Injected") != "" {
		t.Errorf("%.300s: a header was injected: %v", resp.Request, resp.Header)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") && strings.Contains(resp.Body, "<img src=x") {
		t.Errorf("%.300s: a page has an injected element: %.300s", resp.Request, resp.Body)
	}
	for _, leak := range []string{"SQLITE", "SQLSTATE", "syntax error", "root:x:0", "goroutine ", "runtime error"} {
		if strings.Contains(resp.Body, leak) && !strings.Contains(s.body+s.target, leak) && !isReference(s) {
			t.Errorf("%.300s %.200s: the answer contains internal text: %.300s", resp.Request, s.body, resp.Body)
		}
	}
}

// isReference reports whether an answer is documentation or metrics, which may contain the
// words that checkHarmless searches for.
func isReference(s sample) bool {
	return slices.ContainsFunc([]string{"/docs", "/openapi", "/console", "/metrics", "/soap"}, func(p string) bool { return strings.HasPrefix(s.target, p) })
}

// trySend sends a sample unchanged. It returns an error if there is no answer.
func (s sample) trySend(c e2e.Client) (e2e.Response, error) {
	return c.With("Content-Type", s.contentType).Try(s.method, s.target, s.body)
}

// jsonValue matches the string and number values of a JSON body.
var jsonValue = regexp.MustCompile(`([:\[,]\s*)("(?:[^"\\]|\\.)*"|-?\d[0-9.eE+-]*)(\s*[,}\]])`)

// hostileValues selects hostile values in turn, or all of them.
type hostileValues struct {
	useAll bool
	n      int
}

// take returns the next count values of a list, or all values.
func (h *hostileValues) take(list []string, count int) []string {
	if h.useAll {
		return list
	}
	h.n += count
	var values []string
	for i := range count {
		values = append(values, list[(h.n+i)%len(list)])
	}
	return values
}

// variants returns copies of a request with one replaced value each, and copies with hostile bodies.
func (h *hostileValues) variants(doc *openapi3.T, s sample) []sample {
	return slices.Concat(h.values(s), h.bodies(s), h.query(s), h.path(doc, s))
}

// values returns a copy of a sample for each value of its JSON body and each hostile value.
func (h *hostileValues) values(s sample) (variants []sample) {
	if !strings.HasPrefix(s.contentType, "application/json") {
		return nil
	}
	for _, match := range jsonValue.FindAllStringSubmatchIndex(s.body, -1) {
		for _, value := range slices.Concat(quoted(h.take(hostileTexts(), 2)), h.take(hostileNumbers(), 1)) {
			variants = append(variants, s.withBody(s.body[:match[4]]+value+s.body[match[5]:]))
		}
	}
	return variants
}

// bodies returns copies of a sample with hostile bodies, such as deep nesting.
func (h *hostileValues) bodies(s sample) (variants []sample) {
	if s.method == "GET" || s.method == "DELETE" || s.body == "" {
		return nil
	}
	for _, body := range h.take([]string{
		strings.Repeat("[", 400_000), strings.Repeat(`{"a":`, 150_000) + "1" + strings.Repeat("}", 150_000), strings.Repeat("<a>", 200_000),
		strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000), `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}", "\xff\xfe{}", `{"a":"\ud800"}`,
	}, 2) {
		variants = append(variants, s.withBody(body))
	}
	return variants
}

// query returns copies of a sample with hostile parameters in the query.
func (h *hostileValues) query(s sample) (variants []sample) {
	path, query, _ := strings.Cut(s.target, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range h.take(hostileTexts(), 3) {
			changed := maps.Clone(values)
			changed[name] = []string{value}
			variants = append(variants, s.withTarget(path+"?"+changed.Encode()))
		}
	}
	return variants
}

// path returns copies of a sample with hostile parameters in the path.
func (h *hostileValues) path(doc *openapi3.T, s sample) (variants []sample) {
	path, query, _ := strings.Cut(s.target, "?")
	segments := strings.Split(path, "/")
	for n, name := range strings.Split(operation(doc, s.operation).path, "/") {
		if !strings.HasPrefix(name, "{") || n >= len(segments) {
			continue
		}
		for _, value := range h.take(hostileTexts(), 3) {
			changed := slices.Clone(segments)
			changed[n] = url.PathEscape(value)
			variants = append(variants, s.withTarget(strings.Join(changed, "/")+strings.TrimSuffix("?"+query, "?")))
		}
	}
	return variants
}

func (s sample) withBody(body string) sample { s.body = body; return s }

func (s sample) withTarget(target string) sample { s.target = target; return s }

// quoted returns texts as JSON strings, with only the escapes that JSON requires for these texts.
func quoted(texts []string) []string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", `\r`, "\n", `\n`, "\x00", `\u0000`)
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = `"` + escape.Replace(text) + `"`
	}
	return list
}
