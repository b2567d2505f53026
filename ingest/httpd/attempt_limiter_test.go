package httpd

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/relaytest"
)

// guesser makes attempts at an AttemptLimiter with a clock.
type guesser struct {
	*AttemptLimiter
	now time.Time
	log bytes.Buffer
}

func newGuesser() *guesser {
	g := &guesser{now: time.Unix(1_000_000, 0)}
	g.AttemptLimiter = NewAttemptLimiter(func() time.Time { return g.now })
	g.Logger = slog.New(slog.NewTextHandler(&g.log, nil))
	return g
}

func newAttempt(addr, account, secret string) Attempt {
	a := Attempt{Address: netip.MustParseAddr(addr), Account: account}
	copy(a.Sum[:], secret)
	return a
}

// guess makes up to limit attempts with different wrong credentials until it must wait, and returns
// their number.
func (g *guesser) guess(addr, account string, limit int) (n int) {
	for ; n < limit; n++ {
		a := newAttempt(addr, account, fmt.Sprint("wrong ", account, n, g.now.Unix()))
		if g.Wait(a) > 0 {
			return n
		}
		g.RecordFailure(a)
	}
	return n
}

func TestGuessesAreLimitedByAddress(t *testing.T) {
	g := newGuesser()
	g.RecordSuccess(newAttempt("192.0.2.1", "", "right"))
	if n := g.guess("192.0.2.1", "", 1000); n != guessesPerAddress {
		t.Errorf("guesses = %d, want %d", n, guessesPerAddress)
	}
	if strings.Count(g.log.String(), `msg="too many wrong credentials, further ones are refused" request_id="" address=192.0.2.1`) != 1 {
		t.Errorf("log = %s, want one line about too many wrong credentials", &g.log)
	}
	for _, tc := range []struct {
		name string
		a    Attempt
		want time.Duration
	}{
		{"another guess", newAttempt("192.0.2.1", "", "x"), guessInterval},
		{"a credential that was right at the address", newAttempt("192.0.2.1", "", "right"), 0},
		{"another address", newAttempt("192.0.2.2", "", "x"), 0},
	} {
		if got := g.Wait(tc.a); got != tc.want {
			t.Errorf("%s: wait = %s, want %s", tc.name, got, tc.want)
		}
	}
	g.now = g.now.Add(guessInterval)
	if n := g.guess("192.0.2.1", "", 10); n != 1 {
		t.Errorf("guesses after %s = %d, want 1", guessInterval, n)
	}
	g.now = g.now.Add(time.Hour)
	if n := g.guess("192.0.2.1", "", 1000); n != guessesPerAddress {
		t.Errorf("guesses after an hour = %d, want %d", n, guessesPerAddress)
	}
	wrong, refused := g.Counts()
	relaytest.Equal(t, "the number of wrong credentials", wrong[""], 2*guessesPerAddress+1)
	relaytest.Equal(t, "the number of refused requests", refused[""], 4)
	g.now = g.now.Add(exemptionTime)
	g.guess("192.0.2.1", "", 1000)
	if g.Wait(newAttempt("192.0.2.1", "", "right")) == 0 {
		t.Error("a right credential is exempt after 24 hours")
	}
}

func TestGuessesAreLimitedByAccount(t *testing.T) {
	g := newGuesser()
	g.RecordSuccess(newAttempt("192.0.2.200", "acme", "right"))
	total := 0
	for i := range 150 {
		total += g.guess(fmt.Sprintf("198.51.100.%d", i), "acme", 10)
	}
	if want := guessesPerAccount + (150-guessesPerAccount/10)*guessesPerPair; total != want {
		t.Errorf("guesses from 150 addresses = %d, want %d", total, want)
	}
	for _, client := range []struct{ address, account, password string }{
		{"203.0.113.1", "acme", "right"}, {"192.0.2.200", "acme", "right"}, {"198.51.100.1", "globex", "x"},
	} {
		if wait := g.Wait(newAttempt(client.address, client.account, client.password)); wait > 0 {
			t.Errorf("wait of %s at %s = %v, want none", client.account, client.address, wait)
		}
	}
}

// A site usually has a /48 network with 65,536 networks of /64.
func TestGuessesAreLimitedBySite(t *testing.T) {
	g := newGuesser()
	g.RecordSuccess(newAttempt("2001:db8:1:ffff::", "", "right"))
	total := 0
	for i := range 100 {
		total += g.guess(fmt.Sprintf("2001:db8:1:%x::", i), "", 10)
	}
	relaytest.Equal(t, "the guesses from a /48 network", total, guessesPerSite)
	for _, tc := range []struct {
		name, address, credential string
		limited                   bool
	}{
		{"another network of the site", "2001:db8:1:abcd::", "x", true},
		{"a credential that was right at the address", "2001:db8:1:ffff::", "right", false},
		{"another site", "2001:db8:2::", "x", false},
		{"an IPv4 address", "192.0.2.1", "x", false},
	} {
		relaytest.Equal(t, tc.name+" is limited", g.Wait(newAttempt(tc.address, "", tc.credential)) > 0, tc.limited)
	}
}

func TestGuessesOfAnAccountAreLimitedBySite(t *testing.T) {
	g := newGuesser()
	total := 0
	for i := range 100 {
		total += g.guess(fmt.Sprintf("2001:db8:1:%x::", i), "acme", 1)
	}
	relaytest.Equal(t, "the guesses of an account from a /48 network", total, guessesPerAccount)
}

// A sender with a wrong token repeats it. Only the first request counts for the address.
func TestARepeatedWrongCredentialCountsOnce(t *testing.T) {
	g := newGuesser()
	wrong := newAttempt("192.0.2.1", "", "wrong")
	n := 0
	for ; g.Wait(wrong) == 0; n++ {
		g.RecordFailure(wrong)
	}
	if n != guessesPerAddress {
		t.Errorf("attempts with a wrong credential = %d, want %d", n, guessesPerAddress)
	}
	if g.Wait(newAttempt("192.0.2.1", "", "new")) > 0 {
		t.Error("another credential at the address must wait")
	}
}

func TestGuessesAreBounded(t *testing.T) {
	g := newGuesser()
	for i := range maxGuessKeys + 10 {
		a := Attempt{Address: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}
		g.RecordSuccess(a)
		g.RecordFailure(a)
	}
	for name, n := range map[string]int{"keys": len(g.fullAt), "right credentials": len(g.rightAt)} {
		if n > maxGuessKeys {
			t.Errorf("%s = %d, want at most %d", name, n, maxGuessKeys)
		}
	}
}

func TestTooManyAttemptsAreAnsweredWith429(t *testing.T) {
	g := newSigned()
	const limited = `429 {"message":"Too Many Attempts."}`
	try := func(path, header, value string) string { return g.status(t, path, header, value) }
	if got := try("/hook", "X-Auth-Token", "hook"); got != "200 7" {
		t.Fatalf("answer = %s, want 200 7", got)
	}
	for i := range guessesPerAddress {
		if got := try("/hook", "X-Auth-Token", fmt.Sprint("wrong", i)); got[:3] != "401" {
			t.Fatalf("answer to guess %d = %s, want 401", i, got)
		}
	}
	for _, tc := range []struct{ name, path, header, value, want string }{
		{"a webhook", "/hook", "X-Auth-Token", "wrong", limited},
		{"devices", "/iot", "Authorization", "wrong", limited},
		{"a right token without an earlier request", "/iot", "Authorization", "iot", limited},
		{"the admin token", "/admin", "Authorization", "Bearer root", limited},
		{"a signature", "/signed/hq", "X-Signed", "s3cret", limited},
		{"a right token with an earlier request", "/hook", "X-Auth-Token", "hook", "200 7"},
		{"no token", "/hook", "X-Nothing", "", `401 {"message":"Unauthenticated."}`},
	} {
		if got := try(tc.path, tc.header, tc.value); got != tc.want {
			t.Errorf("%s: answer = %s, want %s", tc.name, got, tc.want)
		}
	}
	_, _, header := answertest.Send(t, g.app, answertest.Request("GET", "/hook", "", "X-Auth-Token", "wrong"))
	if header.Get("Retry-After") != "6" {
		t.Errorf("Retry-After = %q, want 6", header.Get("Retry-After"))
	}
	g.advance(guessInterval)
	if got := try("/iot", "Authorization", "iot"); got != "200 8" {
		t.Errorf("answer after the wait = %s, want 200 8", got)
	}
}

func TestTheAddressOfAClientBehindProxies(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, tc := range []struct{ name, remote, forwarded, ip, addr string }{
		{"no proxy", "192.0.2.1", "", "192.0.2.1", "192.0.2.1"},
		{"X-Forwarded-For of an untrusted client", "192.0.2.1", "198.51.100.1", "192.0.2.1", "192.0.2.1"},
		{"a proxy", "10.0.0.1", "198.51.100.1", "198.51.100.1", "198.51.100.1"},
		{"a proxy without X-Forwarded-For", "10.0.0.1", "", "10.0.0.1", "10.0.0.1"},
		{"two proxies", "10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1", "198.51.100.1"},
		{"an address that the client added", "10.0.0.1", "203.0.113.7, 198.51.100.1", "198.51.100.1", "198.51.100.1"},
		{"an invalid address", "10.0.0.1", "198.51.100.1, unknown", "10.0.0.1", "10.0.0.1"},
		{"an IPv6 client", "::1", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"},
		{"IPv4-mapped addresses", "::ffff:10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1", "198.51.100.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			app := New(Options{Logger: discardLogger(), TrustedProxies: proxies})
			app.Get("/", func(c *fiber.Ctx) error { return c.SendString(ClientIP(c) + " " + ClientAddr(c).String()) })
			app.Handler() // builds the routes
			conn := &remoteScript{script{pieces: []string{"GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: " + tc.forwarded + "\r\n\r\n"}}, tc.remote}
			_ = app.Server().ServeConn(conn)
			if got := conn.written.String(); !strings.HasSuffix(strings.SplitN(got, "HTTP/1.1", 3)[1], "\r\n\r\n"+tc.ip+" "+tc.addr) {
				t.Errorf("answer = %q, want %s %s", got, tc.ip, tc.addr)
			}
		})
	}
}

// remoteScript is a script with a remote address.
type remoteScript struct {
	script
	addr string
}

func (r *remoteScript) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(r.addr), Port: 1} }
