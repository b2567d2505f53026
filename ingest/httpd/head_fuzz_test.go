package httpd

import "testing"

// FuzzHead: where a line ends without a CR does not depend on how the bytes of a
// head arrive.
func FuzzHead(f *testing.F) {
	for _, seed := range []string{"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\nHost: h\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\n", "\n", "a\r", "POST / HTTP/1.1\r\n\r\nbody\nof lines\n"} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		var whole, parts head
		want, got := whole.follow(text), -1
		step := max(1, int(size))
		for at := 0; at < len(text) && got < 0; at += step {
			if n := parts.follow(text[at:min(at+step, len(text))]); n >= 0 {
				got = at + n
			}
		}
		if got != want {
			t.Errorf("%q ends badly at %d as a whole, and at %d in pieces of %d", text, want, got, step)
		}
	})
}
