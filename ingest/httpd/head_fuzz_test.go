package httpd

import "testing"

// FuzzHead: where a line ends without a CR, and how many requests are whole, does not depend
// on how their bytes arrive.
func FuzzHead(f *testing.F) {
	for _, seed := range []string{"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\nHost: h\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\n", "\n", "a\r", "POST / HTTP/1.1\r\nContent-Length: 14\r\n\r\nbody\nof lines\n", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;a\r\nab\r\n0\r\nX-A: b\r\n\r\nGET"} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		var whole, parts framing
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
		if want < 0 && (whole.complete != parts.complete || whole.part != parts.part || whole.missing != parts.missing) {
			t.Errorf("%q is followed as %+v as a whole, and as %+v in pieces of %d", text, whole, parts, step)
		}
	})
}
