package httpd

import "testing"

// FuzzHead checks that the offset of a bare LF and the number of complete requests do not depend on
// the pieces in which the bytes arrive.
func FuzzHead(f *testing.F) {
	for _, seed := range []string{"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\nHost: h\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\n", "\n", "a\r", "POST / HTTP/1.1\r\nContent-Length: 14\r\n\r\nbody\nof lines\n", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;a\r\nab\r\n0\r\nX-A: b\r\n\r\nGET"} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		var single, pieces framing
		want, got := single.follow(text), -1
		step := max(1, int(size))
		for start := 0; start < len(text) && got < 0; start += step {
			if n := pieces.follow(text[start:min(start+step, len(text))]); n >= 0 {
				got = start + n
			}
		}
		if got != want {
			t.Errorf("offset in %q = %d in pieces of %d, want %d", text, got, step, want)
		}
		if want < 0 && (single.completeCount != pieces.completeCount || single.part != pieces.part || single.missingBytes != pieces.missingBytes) {
			t.Errorf("state after %q = %+v in pieces of %d, want %+v", text, pieces, step, single)
		}
	})
}
