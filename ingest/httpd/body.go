package httpd

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
)

// ErrBodyTooLarge means that a body exceeds the limit before or after decompression.
var ErrBodyTooLarge = fiber.NewError(fiber.StatusRequestEntityTooLarge, "Request Entity Too Large")

// Errors for bodies that do not arrive completely or are malformed.
var (
	errBodySlow = fiber.NewError(fiber.StatusRequestTimeout, "Request Timeout")
	errBodyCut  = fiber.NewError(fiber.StatusBadRequest, "The body is incomplete.")
	errEncoding = fiber.NewError(fiber.StatusBadRequest, "The body does not match Content-Encoding.")
)

const (
	// The time limit of a body is bodyGrace plus one second for each bodyRate bytes received.
	bodyGrace = 10 * time.Second
	bodyRate  = 64 << 10
	// minBuffer is the initial buffer size of a body.
	minBuffer = 16 << 10
)

// budget limits the memory of several requests, in bytes.
type budget struct {
	limit    int64
	reserved atomic.Int64
}

// reserve reserves n bytes and reports whether they were available.
func (b *budget) reserve(n int) bool {
	if b.reserved.Add(int64(n)) <= b.limit {
		return true
	}
	b.reserved.Add(-int64(n))
	return false
}

type stateKey struct{}

// requestState is the state that the server keeps for a request.
type requestState struct {
	limits    *Limits
	startedAt time.Time
	proxies   []netip.Prefix // the trusted proxies
	ctx       *requestContext
	timeout   time.Duration // the time limit of the request after its body has arrived
	// releaseExtra releases the slot of a search or an export; nil if the request has none.
	releaseExtra func()
	// streamed means that the answer is written after the handlers have returned.
	streamed bool
	// method and route are set at the end of the request.
	method, route string
	// kind and account are set by authentication; until then, kind is Webhooks.
	kind     Kind
	account  relay.AccountID
	admitted bool // the request has a slot
	// The numbers of bytes reserved for the body before and after authentication.
	unauthenticated, authenticated int
}

func stateOf(c *fiber.Ctx) *requestState {
	r, _ := c.Locals(stateKey{}).(*requestState)
	return r
}

// enter sets the kind of a request, and its deadline.
func (r *requestState) enter(k Kind) {
	if r.kind != k {
		r.kind = k
		r.setDeadline(k.deadline())
	}
}

func (r *requestState) setDeadline(d time.Duration) {
	r.timeout = d
	r.ctx.extend(d)
}

// end ends the context of the request and releases the slot of a search or an export.
func (r *requestState) end() {
	r.ctx.end()
	if r.releaseExtra != nil {
		r.releaseExtra()
	}
}

// release releases the slot and memory of a request whose handlers have returned.
func (r *requestState) release() {
	r.releaseSlot()
	if !r.streamed {
		r.end()
	}
	r.limits.unauthenticated.reserved.Add(-int64(r.unauthenticated))
	if r.authenticated > 0 {
		r.limits.kinds[r.kind].unreserve(r.account, int64(r.authenticated))
	}
}

// reserve reserves n bytes for the body of the request. The error is ErrOverloaded.
func (r *requestState) reserve(c *fiber.Ctx, n int) error {
	if r == nil {
		return nil // the app was not created by New
	}
	if !authenticated(c) {
		if !r.limits.unauthenticated.reserve(n) {
			r.limits.refusedUnauthenticated.Add(1)
			return r.refuse(c, "unauthenticated", reasonBytes)
		}
		r.unauthenticated += n
		return nil
	}
	if reason := r.limits.kinds[r.kind].reserve(r.account, int64(n)); reason != "" {
		return r.refuse(c, r.kind.String(), reason)
	}
	r.authenticated += n
	return nil
}

// whileReceiving calls read, which waits for the remaining body. During the call the request has
// no slot, so that other requests do not wait for a slow client.
func (r *requestState) whileReceiving(c *fiber.Ctx, read func() ([]byte, error)) ([]byte, error) {
	link, _ := c.Context().Conn().(*conn)
	if r == nil || link == nil || link.arrived() {
		return read()
	}
	hadSlot := r.admitted
	r.releaseSlot()
	link.beginWaiting()
	r.ctx.timer.Stop() // the body has its own time limit
	b, err := read()
	link.endWaiting()
	r.ctx.extend(r.timeout)
	if err == nil && hadSlot {
		err = r.acquire(c)
	}
	return b, err
}

// Body returns the decompressed body of a request, up to limit bytes. The body is valid until the
// handler returns.
func Body(c *fiber.Ctx, limit int) ([]byte, error) {
	raw, err := RawBody(c, limit)
	if err != nil {
		return nil, err
	}
	encoding := c.Get(fiber.HeaderContentEncoding)
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return raw, nil
	}
	var r io.Reader
	switch strings.ToLower(encoding) {
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(raw))
	case "deflate":
		// RFC 9110 requires the zlib format, but many clients send a bare deflate stream.
		if len(raw) >= 2 && raw[0]&0x0f == 8 && (uint(raw[0])<<8|uint(raw[1]))%31 == 0 {
			r, err = zlib.NewReader(bytes.NewReader(raw))
		} else {
			r = flate.NewReader(bytes.NewReader(raw))
		}
	default:
		return nil, fiber.NewError(fiber.StatusUnsupportedMediaType, "Content-Encoding "+strings.ToValidUTF8(encoding, "?")+" is not supported.")
	}
	if err != nil {
		return nil, errEncoding
	}
	b, err := fill(c, r, -1, limit)
	if err != nil && !errors.Is(err, ErrBodyTooLarge) && relay.KindOf(err) != relay.KindUnavailable {
		return nil, errEncoding
	}
	return b, err
}

// RawBody returns the body of a request as it was sent, up to limit bytes. The body is valid until
// the handler returns. A body takes memory only if a handler reads it.
func RawBody(c *fiber.Ctx, limit int) ([]byte, error) {
	req := c.Request()
	size := req.Header.ContentLength() // negative for a chunked body, or none
	switch {
	case size > limit:
		return nil, ErrBodyTooLarge
	case !req.IsBodyStream():
		if b := req.Body(); len(b) <= limit {
			return b, nil
		}
		return nil, ErrBodyTooLarge
	}
	link, ok := c.Context().Conn().(*conn)
	b, err := stateOf(c).whileReceiving(c, func() ([]byte, error) {
		if ok && link.arrived() {
			return fill(c, req.BodyStream(), size, limit)
		}
		return fill(c, &timedBody{c.Context().Conn(), req.BodyStream(), stateOf(c).startedAt, 0}, size, limit)
	})
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return nil, errBodySlow
	}
	if errors.Is(err, ErrBodyTooLarge) || relay.KindOf(err) == relay.KindUnavailable {
		return nil, err
	}
	if err != nil { // omits the library's error, which quotes the request
		return nil, errBodyCut
	}
	if ok && !link.arrived() {
		return nil, errBodyCut // the library accepts chunks that other parsers read differently
	}
	req.SetBodyRaw(b)
	return b, nil
}

// NoBody refuses requests with a body. It precedes handlers of other libraries, which would read
// a body of any size.
func NoBody(c *fiber.Ctx) error {
	if _, err := RawBody(c, 0); err != nil {
		return err
	}
	return c.Next()
}

// fill reads a body of size bytes, or to its end if size is negative. The memory grows with the
// bytes that arrive, not with the announced size.
func fill(c *fiber.Ctx, r io.Reader, size, limit int) ([]byte, error) {
	var b []byte
	for size < 0 || len(b) < size {
		if len(b) == cap(b) {
			larger := min(max(2*cap(b), minBuffer), limit+1)
			if size >= 0 {
				larger = min(larger, size)
			}
			if err := stateOf(c).reserve(c, larger-cap(b)); err != nil {
				return nil, err
			}
			b = append(make([]byte, 0, larger), b...)
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > limit:
			return nil, ErrBodyTooLarge
		case errors.Is(err, io.EOF) && size < 0:
			return b, nil
		case errors.Is(err, io.EOF) && len(b) < size:
			return nil, io.ErrUnexpectedEOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		}
	}
	return b, nil
}

// timedBody is a body that must arrive within its time limit.
type timedBody struct {
	conn      net.Conn
	body      io.Reader
	startedAt time.Time
	received  int // bytes
}

func (t *timedBody) Read(b []byte) (int, error) {
	deadline := t.startedAt.Add(bodyGrace + time.Duration(t.received)*time.Second/bodyRate)
	if err := t.conn.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	n, err := t.body.Read(b)
	t.received += n
	return n, err
}
