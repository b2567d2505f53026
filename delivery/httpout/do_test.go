package httpout

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

func loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	if o.Allow == nil {
		o.Allow = loopback()
	}
	c, err := New(o)
	relaytest.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func get(url string) outbox.Request { return outbox.Request{Method: "GET", URL: url} }

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// serveConn listens and calls serve for each connection. It returns the URL.
func serveConn(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	relaytest.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// respondOnce returns a function that reads one request, writes the response and closes.
func respondOnce(response string) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, response)
		}
	}
}

func TestDoSendsTheFieldsOfTheRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(202)
		_, _ = io.WriteString(w, "thanks")
	})
	r, err := newClient(t, Options{}).Do(t.Context(), outbox.Request{
		Method: "POST", URL: strings.Replace(url, "//", "//u:p@", 1) + "/in?m=a%20b#fragment", ContentType: "application/x-www-form-urlencoded",
		Headers: map[string]string{"webhook-id": "d1", "Host": "virtual.test"}, Body: []byte("message=a"),
	})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the status", r.Status, 202)
	relaytest.Equal(t, "the excerpt", r.Excerpt(), "thanks")
	user, password, _ := got.BasicAuth()
	fields := fmt.Sprint(got.Method, got.RequestURI, got.Host, user, password, got.Header.Get("Webhook-Id"), got.Header.Get("Content-Type"), got.UserAgent(), string(body))
	if want := "POST/in?m=a%20bvirtual.testupd1application/x-www-form-urlencodedPenstockmessage=a"; fields != want {
		t.Errorf("got  %s\nwant %s", fields, want)
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "Accept-Encoding"} {
		if got.Header.Values(name) != nil {
			t.Errorf("%s was sent", name)
		}
	}
}

func TestAPreviewHasTheURLThatIsSent(t *testing.T) {
	r, err := newClient(t, Options{}).Preview(t.Context(), get("http://u:p@127.0.0.1:9/in?m=a%20b#frag%20ment"))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the URL", r.URL, "http://127.0.0.1:9/in?m=a%20b")
	relaytest.Equal(t, "the credentials", r.Headers["Authorization"], "Basic dTpw")
}

func TestARedirectIsReturnedAndNotFollowed(t *testing.T) {
	var hits atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})
	r, err := newClient(t, Options{}).Do(t.Context(), get(url))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the status", r.Status, 302)
	relaytest.Equal(t, "the number of requests", hits.Load(), 1)
}

func TestRequestsToMisbehavingEndpointsAreRetried(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for name, c := range map[string]struct {
		serve func(net.Conn)
		want  string
	}{
		"no response":                          {func(net.Conn) { <-hang }, "no answer within 2s"},
		"connection closed without a response": {respondOnce(""), "EOF"},
		"incomplete header":                    {respondOnce("HTTP/1.1 200 OK\r\nX: 1\r\n"), "unexpected EOF"},
		"another protocol":                     {respondOnce("SSH-2.0-OpenSSH\r\n\r\n"), "malformed HTTP"},
		"two Content-Length fields":            {respondOnce("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"), "Content-Length"},
		"endless header":                       {respondOnce("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 1<<20)), "headers exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newClient(t, Options{Timeout: 2 * time.Second}).Do(t.Context(), get(serveConn(t, c.serve)+"/?token=secret"))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Fatalf("error = %v, want it to contain %q and not the token", err, c.want)
			}
			expectClass(t, "the request", err, delivery.Retry)
		})
	}
}

func TestAResponseWithABrokenBodyHasItsStatus(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	drip := func(conn net.Conn) {
		respondOnce("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab")(conn)
		<-hang
	}
	for name, c := range map[string]struct {
		serve     func(net.Conn)
		body      string
		truncated bool
		broken    bool
	}{
		"the body stalls":                     {drip, "ab", false, true},
		"the connection ends within the body": {closeWithinBody, "ab", false, true},
		"a body beyond the limit":             {respondOnce("HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 1<<20)), strings.Repeat("x", 1000), true, false},
		"a body of exactly the limit":         {respondOnce("HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 1000)), strings.Repeat("x", 1000), false, false},
		"HTTP/1.0":                            {respondOnce("HTTP/1.0 200 OK\r\n\r\nold"), "old", false, false},
		"Content-Encoding gzip":               {respondOnce("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nzip"), "zip", false, false},
		"an early hint before the response":   {respondOnce("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), "ok", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newClient(t, Options{Timeout: 2 * time.Second, MaxResponse: 1000}).Do(t.Context(), get(serveConn(t, c.serve)))
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the status", r.Status, 200)
			relaytest.Equal(t, "the body", string(r.Body), c.body)
			relaytest.Equal(t, "the body is truncated", r.Truncated, c.truncated)
			relaytest.Equal(t, "the body has an error", r.BodyErr != nil, c.broken)
		})
	}
}

func closeWithinBody(conn net.Conn) {
	respondOnce("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab")(conn)
	_ = conn.(*net.TCPConn).CloseWrite()
}

func TestAnExcerptIsValidTextOfAtMostOneKibibyte(t *testing.T) {
	long := Response{Body: []byte(strings.Repeat("ü", 1000) + "x")}
	odd := Response{Body: []byte("a\xff\x00b" + strings.Repeat("a", 1021) + "ü")}
	if got := long.Excerpt(); len(got) != 1024 {
		t.Errorf("the excerpt has %d bytes, want 1024", len(got))
	}
	if got := odd.Excerpt(); got != "ab"+strings.Repeat("a", 1020) {
		t.Errorf("got the excerpt %q, want it without invalid octets", got)
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	_, err := newClient(t, Options{}).Do(t.Context(), get(s.URL+"/?token=secret"))
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); !ok || strings.Contains(err.Error(), "secret") {
		t.Errorf("error = %v, want an unknown authority without the token", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	r, err := newClient(t, Options{RootCAs: roots}).Do(t.Context(), get(s.URL))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the status of a trusted server", r.Status, 200)
}

func TestConnectionsToAHostAreReused(t *testing.T) {
	var dials atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			dials.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	c := newClient(t, Options{})
	for range 20 {
		if _, err := c.Do(t.Context(), get(s.URL)); err != nil {
			t.Fatal(err)
		}
	}
	if dials.Load() != 1 {
		t.Errorf("%d connections for 20 requests, want 1", dials.Load())
	}
}

// The endpoint responds to one request per connection and closes the connection after reading
// the next one, like a server whose keep-alive timeout ends just then.
func TestRequestsOnADeadConnectionAreRepeatedIfThatIsSafe(t *testing.T) {
	url := serveConn(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		if readRequest(r) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			readRequest(r)
		}
	})
	post := outbox.Request{Method: "POST", URL: url, Body: []byte("x")}
	signed := post
	signed.Headers = map[string]string{"Webhook-Id": "d1"}
	for name, c := range map[string]struct {
		request outbox.Request
		works   bool
	}{"a GET": {get(url), true}, "a POST with a webhook-id": {signed, true}, "a POST without a webhook-id": {post, false}} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, Options{})
			if _, err := client.Do(t.Context(), get(url)); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Do(t.Context(), c.request); (err == nil) != c.works {
				t.Errorf("the second request returned %v, want an error: %t", err, !c.works)
			}
		})
	}
}

func readRequest(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

func TestARequestThatCannotBeSentIsDead(t *testing.T) {
	for name, req := range map[string]outbox.Request{
		"a broken URL":           {Method: "GET", URL: "http://example.test/%zz?token=secret"},
		"another scheme":         {Method: "GET", URL: "file:///etc/passwd"},
		"no host":                {Method: "GET", URL: "http:///secret"},
		"a broken method":        {Method: "G T", URL: "http://example.test/"},
		"a line end in a header": {Method: "GET", URL: "http://example.test/", Headers: map[string]string{"X-Name": "secret\r\nX-Evil: 1"}},
		"a broken header name":   {Method: "GET", URL: "http://example.test/", Headers: map[string]string{"X Name": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newClient(t, Options{}).Do(t.Context(), req)
			expectClass(t, "the request", err, delivery.Dead)
			if err != nil && strings.Contains(delivery.Classify(0, nil, err, time.Now()).Reason, "secret") {
				t.Errorf("the reason contains the secret: %v", err)
			}
		})
	}
}

func TestANameWithAPrivateAddressIsDead(t *testing.T) {
	var hits atomic.Int32
	url := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	private := strings.Replace(url, "127.0.0.1", "localhost", 1)
	_, err := newClient(t, Options{Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}).Do(t.Context(), get(private))
	expectClass(t, "the request", err, delivery.Dead)
	if err != nil && !strings.HasSuffix(delivery.Classify(0, nil, err, time.Now()).Reason, " of localhost is not public") {
		t.Errorf("error = %v, want the suffix: of localhost is not public", err)
	}
	relaytest.Equal(t, "the number of requests", hits.Load(), 0)
}

func TestShutdownIsAFaultOfTheGateway(t *testing.T) {
	arrived := make(chan struct{})
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { close(arrived); <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := newClient(t, Options{}).Do(ctx, get(url))
	expectClass(t, "a cancelled request", err, delivery.Fault)
}

func TestASilentResolverIsAFaultOfTheGateway(t *testing.T) {
	dns, err := net.ListenPacket("udp", "127.0.0.1:0")
	relaytest.NoError(t, err)
	t.Cleanup(func() { dns.Close() })
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", dns.LocalAddr().String())
	}}
	c := newClient(t, Options{Timeout: 2 * time.Second, Resolver: resolver})
	_, err = c.Do(t.Context(), get("http://example.test/"))
	expectClass(t, "a resolver that does not answer", err, delivery.Fault)
	closed, _ := net.Listen("tcp", "127.0.0.1:0")
	closed.Close()
	_, err = c.Do(t.Context(), get("http://"+closed.Addr().String()))
	expectClass(t, "a refused connection", err, delivery.Retry)
}

// expectClass compares the class of the error of a request.
func expectClass(t *testing.T, label string, err error, want delivery.Class) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s: no error", label)
	}
	if got := delivery.Classify(0, nil, err, time.Now()).Class; got != want {
		t.Errorf("%s: the class is %s, want %s; the error is %v", label, got, want, err)
	}
}

func TestAnInvalidAllowedNetworkIsRefused(t *testing.T) {
	if _, err := New(Options{Allow: []netip.Prefix{{}}}); err == nil {
		t.Error("New returned no error for an invalid network")
	}
}
