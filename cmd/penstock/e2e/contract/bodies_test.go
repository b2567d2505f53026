package contract

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// gzipped returns the content of r, compressed with gzip.
func gzipped(t *testing.T, r io.Reader) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.Copy(w, r)
	relaytest.NoError(t, err, w.Close())
	return b.String()
}

// blankReader reads as an endless run of spaces.
type blankReader struct{}

func (blankReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func testBodies(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	const invalid = `{"message": "Invalid JSON."}`
	for _, tc := range []struct{ name, path, body string }{
		{"the incomplete body of a network server", "/webhooks/lorawan", `{"deviceInfo": {"devEui": "70b3`},
		{"a form at the generic webhook", "/webhooks/generic", `temperature=5`},
		{"an empty body", "/webhooks/lorawan", ``},
		{"text after the object", "/webhooks/community", `{"a": 1} x`},
		{"a carrier's incomplete message", "/inbound/sms/json", `{"id": `},
		{"an incomplete decoder", "/iot/decoders", `{`},
		{"an incomplete request for a replay", "/admin/events/replay", `{"ids": `},
	} {
		t.Run("malformed JSON is 422: "+tc.name, func(t *testing.T) {
			c := acme.With("Content-Type", "application/json")
			if strings.HasPrefix(tc.path, "/admin") {
				c = g.Admin()
			}
			c.Post(tc.path, tc.body).Expect(t, 422, invalid)
		})
	}
	t.Run("protobuf is 415 and the message explains how to send JSON", func(t *testing.T) {
		acme.With("Content-Type", "application/octet-stream").Post("/webhooks/lorawan?event=up", "\x0a\x24\x08\x96\x01").
			Mentions(t, 415, "encoding to JSON")
	})
	big := `{"deviceId": "big", "temperature": 1, "pad": "` + strings.Repeat("x", 1<<20) + `"}`
	t.Run("a body over the limit is 413", func(t *testing.T) {
		acme.Post("/webhooks/generic", big).Mentions(t, 413)
	})
	compressed := acme.With("Content-Encoding", "gzip").With("Content-Type", "application/json")
	t.Run("a compressed body is read", func(t *testing.T) {
		body := gzipped(t, strings.NewReader(`{"deviceId": "small", "temperature": 3}`))
		compressed.Post("/webhooks/generic?decoder_id=sent", body).Mentions(t, 200, `"value":3`)
	})
	t.Run("a body that exceeds the limit when decompressed is 413", func(t *testing.T) {
		compressed.Post("/webhooks/generic", gzipped(t, strings.NewReader(big))).Mentions(t, 413)
	})
	t.Run("a bomb of 320 MB in 320 kB is 413", func(t *testing.T) {
		bomb := strings.Repeat(gzipped(t, io.LimitReader(blankReader{}, 8<<20)), 40) // a gzip file may have several members
		for _, path := range []string{"/webhooks/generic", "/webhooks/lorawan", "/inbound/sms/json", "/iot/decoders"} {
			compressed.Post(path, bomb).Mentions(t, 413)
		}
	})
	t.Run("a body that does not match Content-Encoding is refused", func(t *testing.T) {
		compressed.Post("/webhooks/generic", `{"deviceId": "plain"}`).Mentions(t, 400)
		acme.With("Content-Encoding", "br").Post("/webhooks/generic", `{}`).Mentions(t, 415, "br is not supported")
	})
	t.Run("a request with two lengths is 400", func(t *testing.T) {
		raw := "POST /webhooks/lorawan HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer acme-all-0123456\r\n" +
			"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
		resp := exchange(t, g, raw)
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("status = %d, want 400", resp.StatusCode)
		}
	})
	t.Run("a request without a route is 404", func(t *testing.T) {
		acme.Get("/nowhere").Expect(t, 404, `{"message": "Not found."}`)
	})
	t.Run("errors about an SMS name its fields", func(t *testing.T) {
		acme.Post("/inbound/sms/json", `{"id": "1", "from": ["a"], "to": "fred", "text": "x"}`).
			Mentions(t, 422, "The given data was invalid.", "The from must be a string.", "The to must be a number of 1 to 15 digits.")
		acme.Post("/inbound/sms/json", `{"to": "447800000001"}`).
			Mentions(t, 422, "The id field is required.", "The from field is required.", "The text field is required when data is not present.")
		acme.Get("/inbound/sms/kannel?from=1&to=2").Mentions(t, 422, "The text field is required.")
	})
}

// exchange sends raw bytes and reads one response.
func exchange(t *testing.T, g *e2e.Gateway, raw string) *http.Response {
	t.Helper()
	conn := relaytest.Must(net.Dial("tcp", strings.TrimPrefix(g.URL(), "http://")))(t)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(relaytest.Patience))
	_, err := fmt.Fprint(conn, raw)
	relaytest.NoError(t, err)
	return relaytest.Must(http.ReadResponse(bufio.NewReader(conn), nil))(t)
}
