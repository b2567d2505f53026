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

// guesser shows credentials to a Guesses on a clock.
type guesser struct {
	*Guesses
	at  time.Time
	log bytes.Buffer
}

func newGuesser() *guesser {
	g := &guesser{at: time.Unix(1_000_000, 0)}
	g.Guesses = NewGuesses(func() time.Time { return g.at })
	g.Logger = slog.New(slog.NewTextHandler(&g.log, nil))
	return g
}

func shown(addr, account, secret string) Attempt {
	a := Attempt{Address: netip.MustParseAddr(addr), Account: account}
	copy(a.Sum[:], secret)
	return a
}

// fails shows wrong credentials, each another one, until it has to wait, and returns how
// many were looked at.
func (g *guesser) fails(addr, account string, most int) (n int) {
	for ; n < most; n++ {
		a := shown(addr, account, fmt.Sprint("wrong ", account, n, g.at.Unix()))
		if g.Wait(a) > 0 {
			return n
		}
		g.Wrong(a)
	}
	return n
}

func TestGuessesAreLimitedByAddress(t *testing.T) {
	g := newGuesser()
	g.Right(shown("192.0.2.1", "", "known here"))
	if n := g.fails("192.0.2.1", "", 1000); n != guessesOfAddress {
		t.Errorf("%d guesses", n)
	}
	if strings.Count(g.log.String(), `msg="too many wrong credentials, further ones are refused" request_id="" address=192.0.2.1`) != 1 {
		t.Errorf("the log says %s", &g.log)
	}
	for _, tc := range []struct {
		name string
		a    Attempt
		want time.Duration
	}{
		{"another guess", shown("192.0.2.1", "", "x"), guessEvery},
		{"a credential that was right here", shown("192.0.2.1", "", "known here"), 0},
		{"from elsewhere", shown("192.0.2.2", "", "x"), 0},
	} {
		if got := g.Wait(tc.a); got != tc.want {
			t.Errorf("%s waits %s, want %s", tc.name, got, tc.want)
		}
	}
	g.at = g.at.Add(guessEvery)
	if n := g.fails("192.0.2.1", "", 10); n != 1 {
		t.Errorf("%d guesses after %s", n, guessEvery)
	}
	g.at = g.at.Add(time.Hour)
	if n := g.fails("192.0.2.1", "", 1000); n != guessesOfAddress {
		t.Errorf("%d guesses after an hour", n)
	}
	wrong, refused := g.Counts()
	relaytest.Equal(t, "the number of wrong credentials", wrong[""], 2*guessesOfAddress+1)
	relaytest.Equal(t, "the number of refused requests", refused[""], 4)
	g.at = g.at.Add(rightFor)
	g.fails("192.0.2.1", "", 1000)
	if g.Wait(shown("192.0.2.1", "", "known here")) == 0 {
		t.Error("what was right long ago still is")
	}
}

func TestGuessesAreLimitedByAccount(t *testing.T) {
	g := newGuesser()
	g.Right(shown("192.0.2.200", "acme", "right"))
	total := 0
	for i := range 150 {
		total += g.fails(fmt.Sprintf("198.51.100.%d", i), "acme", 10)
	}
	if want := guessesOfAccount + (150-guessesOfAccount/10)*guessesPerPair; total != want {
		t.Errorf("%d guesses from 150 addresses, want %d", total, want)
	}
	for _, from := range []struct{ address, account, password string }{
		{"203.0.113.1", "acme", "right"}, {"192.0.2.200", "acme", "right"}, {"198.51.100.1", "globex", "x"},
	} {
		if wait := g.Wait(shown(from.address, from.account, from.password)); wait > 0 {
			t.Errorf("%s of %s must wait %v", from.account, from.address, wait)
		}
	}
}

// A site usually has 48 bits of the address to itself: 65,536 networks of 64 bits.
func TestGuessesAreLimitedByTheNetworkOfASite(t *testing.T) {
	g := newGuesser()
	g.Right(shown("2001:db8:1:ffff::", "", "right"))
	total := 0
	for i := range 100 {
		total += g.fails(fmt.Sprintf("2001:db8:1:%x::", i), "", 10)
	}
	relaytest.Equal(t, "the guesses from one network of 48 bits", total, guessesOfSite)
	for _, tc := range []struct {
		name, address, credential string
		limited                   bool
	}{
		{"another network of the site", "2001:db8:1:abcd::", "x", true},
		{"a credential that was right in the site", "2001:db8:1:ffff::", "right", false},
		{"the next site", "2001:db8:2::", "x", false},
		{"an address of IPv4", "192.0.2.1", "x", false},
	} {
		relaytest.Equal(t, tc.name+" is limited", g.Wait(shown(tc.address, "", tc.credential)) > 0, tc.limited)
	}
}

func TestGuessesOfAnAccountAreLimitedByTheNetworkOfASite(t *testing.T) {
	g := newGuesser()
	total := 0
	for i := range 100 {
		total += g.fails(fmt.Sprintf("2001:db8:1:%x::", i), "acme", 1)
	}
	relaytest.Equal(t, "the guesses of an account from one network of 48 bits", total, guessesOfAccount)
}

// A sender whose token is wrong repeats it: only the first request counts as a guess,
// and only that sender is limited.
func TestTheSameWrongCredentialCountsOnce(t *testing.T) {
	g := newGuesser()
	wrong := shown("192.0.2.1", "", "wrong")
	n := 0
	for ; g.Wait(wrong) == 0; n++ {
		g.Wrong(wrong)
	}
	if n != guessesOfAddress {
		t.Errorf("it was looked at %d times", n)
	}
	if g.Wait(shown("192.0.2.1", "", "new")) > 0 {
		t.Error("others behind the address are kept out")
	}
}

func TestGuessesAreBounded(t *testing.T) {
	g := newGuesser()
	for i := range maxGuessKeys + 10 {
		a := Attempt{Address: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}
		g.Right(a)
		g.Wrong(a)
	}
	for what, n := range map[string]int{"keys": len(g.spent), "right credentials": len(g.right)} {
		if n > maxGuessKeys {
			t.Errorf("%d %s are kept, want %d at most", n, what, maxGuessKeys)
		}
	}
}

func TestTooManyAttemptsAtASurface(t *testing.T) {
	g := newSigned()
	const limited = `429 {"message":"Too Many Attempts."}`
	try := func(path, header, value string) string { return g.status(t, path, header, value) }
	if got := try("/hook", "X-Auth-Token", "hook"); got != "200 7" {
		t.Fatal(got)
	}
	for i := range guessesOfAddress {
		if got := try("/hook", "X-Auth-Token", fmt.Sprint("wrong", i)); got[:3] != "401" {
			t.Fatalf("guess %d: %s", i, got)
		}
	}
	for _, tc := range []struct{ name, path, header, value, want string }{
		{"a webhook", "/hook", "X-Auth-Token", "wrong", limited},
		{"devices", "/iot", "Authorization", "wrong", limited},
		{"a right token that never was used here", "/iot", "Authorization", "iot", limited},
		{"the administrator", "/admin", "Authorization", "Bearer root", limited},
		{"a signature", "/signed/hq", "X-Signed", "s3cret", limited},
		{"a right token that was", "/hook", "X-Auth-Token", "hook", "200 7"},
		{"no token", "/hook", "X-Nothing", "", `401 {"message":"Unauthenticated."}`},
	} {
		if got := try(tc.path, tc.header, tc.value); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	_, _, header := answertest.Ask(t, g.app, answertest.Request("GET", "/hook", "", "X-Auth-Token", "wrong"))
	if header.Get("Retry-After") != "6" {
		t.Errorf("Retry-After %q", header.Get("Retry-After"))
	}
	g.pass(guessEvery)
	if got := try("/iot", "Authorization", "iot"); got != "200 8" {
		t.Errorf("after the wait: %s", got)
	}
}

func TestTheClientsAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, tc := range []struct{ name, remote, forwarded, want, by string }{
		{"nobody between", "192.0.2.1", "", "192.0.2.1", "192.0.2.1"},
		{"a stranger who names another", "192.0.2.1", "198.51.100.1", "192.0.2.1", "192.0.2.1"},
		{"a proxy", "10.0.0.1", "198.51.100.1", "198.51.100.1", "198.51.100.1"},
		{"a proxy that names nobody", "10.0.0.1", "", "10.0.0.1", "10.0.0.1"},
		{"two proxies", "10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1", "198.51.100.1"},
		{"what a client put in front", "10.0.0.1", "203.0.113.7, 198.51.100.1", "198.51.100.1", "198.51.100.1"},
		{"what cannot be read", "10.0.0.1", "198.51.100.1, unknown", "10.0.0.1", "10.0.0.1"},
		{"IPv6 by its network", "::1", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"},
		{"IPv4 within IPv6", "::ffff:10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1", "198.51.100.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			app := New(Options{Logger: quiet(), TrustedProxies: proxies})
			app.Get("/", func(c *fiber.Ctx) error { return c.SendString(ClientIP(c) + " " + ClientAddr(c).String()) })
			app.Handler() // builds the routes
			conn := &from{script{says: []string{"GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: " + tc.forwarded + "\r\n\r\n"}}, tc.remote}
			_ = app.Server().ServeConn(conn)
			if got := conn.got.String(); !strings.HasSuffix(strings.SplitN(got, "HTTP/1.1", 3)[1], "\r\n\r\n"+tc.want+" "+tc.by) {
				t.Errorf("%s", got)
			}
		})
	}
}

// from is a script from an address.
type from struct {
	script
	addr string
}

func (f *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.addr), Port: 1} }
