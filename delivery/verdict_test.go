package delivery

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/relay/relaytest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The ranges cover the status codes 100 to 599, each once.
func TestEveryStatusCodeHasItsClass(t *testing.T) {
	ranges := []struct {
		low, high int
		want      Class
	}{
		{100, 199, Retry}, {200, 299, Delivered}, {300, 399, Dead},
		{400, 407, Dead}, {408, 408, Retry}, {409, 424, Dead}, {425, 425, Retry},
		{426, 428, Dead}, {429, 429, Retry}, {430, 499, Dead}, {500, 599, Retry},
	}
	nextStatus := 100
	for _, r := range ranges {
		if r.low != nextStatus {
			t.Fatalf("the table has a gap at %d", nextStatus)
		}
		for status := r.low; status <= r.high; status++ {
			v := Classify(status, http.Header{"Retry-After": {"7"}}, nil, noon)
			if v.Class != r.want {
				t.Errorf("%d: got %s, want %s", status, v.Class, r.want)
			}
			if (v.Reason == "") != (r.want == Delivered) {
				t.Errorf("%d: reason = %q for class %s", status, v.Reason, v.Class)
			}
			if (v.RetryAfter == 7*time.Second) != (r.want == Retry) {
				t.Errorf("%d: retry after %s for class %s", status, v.RetryAfter, v.Class)
			}
		}
		nextStatus = r.high + 1
	}
	if nextStatus != 600 {
		t.Fatalf("the table ends at %d", nextStatus)
	}
	for _, status := range []int{0, 99, 600, 999} {
		if v := Classify(status, nil, nil, noon); v.Class != Retry {
			t.Errorf("%d: got %s, want %s", status, v.Class, Retry)
		}
	}
}

func TestTheReasonOfARedirectNamesOnlyTheOrigin(t *testing.T) {
	for location, want := range map[string]string{
		"https://u:secret@example.test/new?token=secret": "answered 301 Moved Permanently: redirects to https://example.test are not followed",
		"/new?token=secret": "answered 301 Moved Permanently: redirects to another path of the host are not followed",
		"":                  "answered 301 Moved Permanently",
	} {
		if v := Classify(301, http.Header{"Location": {location}}, nil, noon); v.Reason != want {
			t.Errorf("a redirect to %q: got %q, want %q", location, v.Reason, want)
		}
	}
}

func TestErrorsAreClassifiedByTheirCause(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want Class
	}{
		"connection refused":               {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, Retry},
		"connection reset":                 {syscall.ECONNRESET, Retry},
		"no route":                         {syscall.EHOSTUNREACH, Retry},
		"timeout":                          {context.DeadlineExceeded, Retry},
		"broken certificate":               {errors.New("x509: certificate has expired"), Retry},
		"no such host":                     {&net.DNSError{Err: "no such host", IsNotFound: true}, Retry},
		"a broken zone":                    {&net.DNSError{Err: "server misbehaving", IsTemporary: true}, Retry},
		"a resolver that times out":        {&net.DNSError{Err: "i/o timeout", IsTimeout: true}, Fault},
		"a resolver that is down":          {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "read udp 127.0.0.1:53: connection refused"}}, Fault},
		"shutdown":                         {fmt.Errorf("request: %w", context.Canceled), Fault},
		"too many open files":              {os.NewSyscallError("socket", syscall.EMFILE), Fault},
		"no port left":                     {os.NewSyscallError("connect", syscall.EADDRNOTAVAIL), Fault},
		"marked with OwnFault":             {fmt.Errorf("wrapped: %w", OwnFault(syscall.ECONNREFUSED)), Fault},
		"an address that is not public":    {fmt.Errorf("dial: %w", &guard.Error{Addr: netip.MustParseAddr("10.0.0.5"), Host: "example.test"}), Dead},
		"a request that cannot be sent":    {Unsendable(errors.New("header is not valid")), Dead},
		"unsendable around another class":  {Unsendable(context.Canceled), Dead},
		"an answer that is not valid HTTP": {errors.New("malformed HTTP response"), Retry},
	} {
		t.Run(name, func(t *testing.T) {
			if v := Classify(0, nil, c.err, noon); v.Class != c.want || v.Reason != c.err.Error() {
				t.Errorf("got %s %q, want %s", v.Class, v.Reason, c.want)
			}
		})
	}
}

func TestPublicReasonsNameNoHostsOrPaths(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for want, err := range map[string]error{
		"the address is not public":            fmt.Errorf("GET: %w", &guard.Error{Addr: netip.MustParseAddr("10.0.0.1"), Host: "db"}),
		"unknown host name":                    dial(&net.DNSError{Err: "no such host", Name: "db", Server: "10.0.0.2:53", IsNotFound: true}),
		"the host name cannot be resolved now": dial(&net.DNSError{Err: "timeout", Name: "db", Server: "10.0.0.2:53", IsTimeout: true}),
		"the certificate is not valid":         &tls.CertificateVerificationError{Err: errors.New("/etc/ssl/x")},
		"no answer in time":                    fmt.Errorf("GET: %w", context.DeadlineExceeded),
		"connection refused":                   dial(syscall.ECONNREFUSED),
		"no connection":                        dial(syscall.EHOSTUNREACH),
	} {
		if v := Classify(0, nil, err, time.Now()); v.Public != want {
			t.Errorf("%v: got %q, want %q", err, v.Public, want)
		}
	}
}

func TestEveryMailCodeHasItsClass(t *testing.T) {
	for code := range 700 {
		want := Retry
		switch code / 100 {
		case 2:
			want = Delivered
		case 5:
			want = Dead
		}
		if v := ClassifyMail(code, "text", nil); v.Class != want {
			t.Errorf("%d: got %s, want %s", code, v.Class, want)
		}
	}
	for text, want := range map[string]string{
		"5.1.1 No such user":                    "answered 550 5.1.1",
		"5.7.1 Your code is 4711: spam":         "answered 550 5.7.1",
		"Message \"Your code is 4711\" refused": "answered 550",
		"4711.1.1 your code":                    "answered 550",
		"4711":                                  "answered 550",
		"":                                      "answered 550",
	} {
		relaytest.Equal(t, "the reason of "+text, ClassifyMail(550, text, nil).Reason, want)
	}
	if v := ClassifyMail(250, "ok", OwnFault(errors.New("x"))); v.Class != Fault {
		t.Errorf("a code and an error: got %s, want fault", v.Class)
	}
}

func TestReasonsAreShortAndValid(t *testing.T) {
	v := Classify(0, nil, errors.New(strings.Repeat("ü", 1000)), noon)
	if len(v.Reason) > 310 || strings.ToValidUTF8(v.Reason, "") != v.Reason {
		t.Errorf("reason has %d bytes or is not valid UTF-8: %q", len(v.Reason), v.Reason)
	}
}
