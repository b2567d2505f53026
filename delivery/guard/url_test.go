package guard

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestInvalidURLsAreRefused(t *testing.T) {
	for name, raw := range map[string]string{
		"empty": "", "no scheme": "example.test/in", "another scheme": "ftp://example.test/", "a file": "file:///etc/passwd", "gopher": "gopher://example.test:70/", "a script": "javascript:alert(1)",
		"no host": "http:///in", "only a port": "http://:80/", "opaque": "http:example.test", "a broken escape": "http://example.test/%zz", "a control character": "http://example.test/\n", "a space in the host": "http://exa mple.test/",
		"port 0": "http://example.test:0/", "a port too high": "http://example.test:65536/", "a port of letters": "http://example.test:http/",
		"decimal": "http://2130706433/", "public in decimal": "http://134744072/", "octal": "http://0177.0.0.1/", "octal in one part": "http://017700000001/", "hex": "http://0x7f.0.0.1/", "hex in one part": "http://0x7f000001/", "hex in capitals": "http://0X7F.1/", "empty hex": "http://0x/",
		"two parts": "http://127.1/", "three parts": "http://127.0.1/", "zero": "http://0/", "leading zeros": "http://127.0.0.01/", "five parts": "http://1.2.3.4.5/", "a trailing dot": "http://127.0.0.1./", "decimal with a dot": "http://2130706433./",
		"full-width digits": "http://１２７.０.０.１/", "ideographic dots": "http://127。0。0。1/", "circled digits": "http://①②⑦.0.0.1/",
		"localhost": "http://localhost/", "localhost in capitals": "http://LOCALHOST:8080/", "localhost with a dot": "http://localhost./", "a subdomain of localhost": "http://a.localhost/", "localhost's long name": "http://localhost.localdomain/", "localhost's v6 name": "http://ip6-localhost/",
		"after user information": "http://example.test@127.0.0.1/", "after a backslash": "http://example.test\\@127.0.0.1/", "after a password": "http://u:p@10.0.0.1/", "an escaped host": "http://%31%32%37.0.0.1/",
		"v6 with a zone": "http://[fe80::1%25eth0]/", "v6 public with a zone": "http://[2606:4700::1%25eth0]/", "v6 not closed": "http://[::1/", "v4 in brackets": "http://[127.0.0.1]/", "a name in brackets": "http://[example.test]/",
		"empty labels": "http://a..b/", "a leading dot": "http://.example.test/", "a long host": "http://" + strings.Repeat("a.", 130) + "test/", "a long URL": "http://example.test/" + strings.Repeat("a", maxURL), "an invalid character": "http://a!b.test/",
	} {
		t.Run(name, func(t *testing.T) {
			if err := New(nil).CheckURL(raw); err == nil {
				t.Errorf("CheckURL(%q) returned no error", raw)
			}
		})
	}
}

func TestValidURLsAreAccepted(t *testing.T) {
	for _, raw := range []string{
		"http://example.test", "https://example.test/in?m=%m&o=%o", "https://user:pass@example.test:8443/", "http://8.8.8.8:8080/", "http://[2606:4700:4700::1111]/",
		"http://bücher.test/", "http://3com.test/", "http://1.2.3.4.example.test/", "http://my_host.test./", "HTTP://EXAMPLE.TEST/#x", "http://intranet/",
	} {
		if err := New(nil).CheckURL(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	g := New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	for _, raw := range []string{"http://127.0.0.1:9000/in", "http://localhost:9000/in"} {
		if err := g.CheckURL(raw); err != nil {
			t.Errorf("%s with an allowed address: %v", raw, err)
		}
	}
}

func TestRedactLeavesNoSecret(t *testing.T) {
	for raw, want := range map[string]string{
		"https://user:secret@example.test/a?token=secret&x=&secret#secret": "https://***@example.test/a?token=***&x=***&***",
		"http://secret@[::1]:80/":   "http://***@[::1]:80/",
		"/relative?key=secret":      "/relative?key=***",
		"http://example.test/plain": "http://example.test/plain",
		"http://exa mple:secret@%":  "(unreadable URL)",
		"mailto:secret@example":     "mailto:***",
	} {
		if got := Redact(raw); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, raw := range []string{"http://example.test/in?m=%m", "http://0x7f.1/", "http://[::ffff:10.0.0.1]:80/", "http://u:p@127.0.0.1./", "https://１２７.1/", "http://[fe80::1%25lo]/", "http://a。b/"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		g := New(nil)
		if g.CheckURL(raw) != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.Hostname() == "" {
			t.Fatalf("CheckURL allows %q, which has no host: %v", raw, err)
		}
		if addr, err := netip.ParseAddr(strings.TrimSuffix(u.Hostname(), ".")); err == nil && g.Check(addr) != nil {
			t.Errorf("CheckURL allows %q with the address %s", raw, addr)
		}
	})
}

func FuzzRedact(f *testing.F) {
	for _, raw := range []string{"https://user:pa55word@example.test/a?token=x", "//u:p@h", "http:opaque?x", "?a=b&c"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		redacted := Redact(raw)
		u, err := url.Parse(raw)
		if err != nil {
			return
		}
		if p, ok := u.User.Password(); ok && len(p) > 3 && !strings.Contains(u.Scheme+u.Host+u.Path+u.RawQuery, p) && strings.Contains(redacted, p) && p != "***" {
			t.Errorf("Redact(%q) = %q, which contains the password", raw, redacted)
		}
	})
}
