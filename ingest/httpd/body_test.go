package httpd

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
)

func packed(t *testing.T, text string, pack func(io.Writer) (io.WriteCloser, error)) string {
	t.Helper()
	var b bytes.Buffer
	w, err := pack(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gzipped(w io.Writer) (io.WriteCloser, error)  { return gzip.NewWriter(w), nil }
func zlibbed(w io.Writer) (io.WriteCloser, error)  { return zlib.NewWriter(w), nil }
func deflated(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, 9) }

func TestBody(t *testing.T) {
	const limit = 1000
	app := New(Options{Logger: quiet(), BodyLimit: 100_000})
	app.Post("/", func(c *fiber.Ctx) error {
		b, err := Body(c, limit)
		if err != nil {
			return err
		}
		return c.SendString(strconv.Itoa(len(b)))
	})
	whole, over := strings.Repeat("x", limit), strings.Repeat("x", limit+1)
	bomb := packed(t, strings.Repeat("\x00", 50<<20), gzipped)
	cases := []struct {
		name, encoding, body string
		status               int
		want                 string
	}{
		{"as it is", "", whole, 200, "1000"},
		{"as it is, named so", "Identity", whole, 200, "1000"},
		{"as it is and a byte too long", "", over, 413, "Request Entity Too Large"},
		{"gzip", "GZIP", packed(t, whole, gzipped), 200, "1000"},
		{"gzip that grows a byte too long", "gzip", packed(t, over, gzipped), 413, "Request Entity Too Large"},
		{"a bomb", "gzip", bomb, 413, "Request Entity Too Large"},
		{"deflate in zlib", "deflate", packed(t, whole, zlibbed), 200, "1000"},
		{"deflate without", "deflate", packed(t, whole, deflated), 200, "1000"},
		{"deflate a byte too long", "deflate", packed(t, over, zlibbed), 413, "Request Entity Too Large"},
		{"gzip cut short", "gzip", packed(t, whole, gzipped)[:20], 400, "not what Content-Encoding says"},
		{"no gzip", "gzip", "{}", 400, "not what Content-Encoding says"},
		{"no deflate", "deflate", "\xff\xff", 400, "not what Content-Encoding says"},
		{"nothing as gzip", "gzip", "", 400, "not what Content-Encoding says"},
		{"an unknown encoding", "br", "x", 415, "Content-Encoding br is not supported."},
		{"two encodings", "gzip, gzip", "x", 415, "Content-Encoding gzip, gzip is not supported."},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := request("POST", "/", tc.body)
			if tc.encoding != "" {
				r.Header.Set("Content-Encoding", tc.encoding)
			}
			status, body, _ := ask(t, app, r)
			if status != tc.status || !strings.Contains(body, tc.want) {
				t.Errorf("%d %s, want %d %s", status, body, tc.status, tc.want)
			}
		})
	}
}
