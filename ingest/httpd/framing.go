package httpd

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// part is the part of a request that the next byte of a connection belongs to.
type part int

const (
	inHead part = iota
	inBody
	inChunkSize
	inChunk
	afterChunk // the line end behind a chunk
	inTrailer
	// astray means that a request breaks the rules of framing: nothing behind it is
	// followed. The request is refused, and its connection closed.
	astray
)

// framing follows the requests of a connection as their bytes arrive (RFC 9112, sections 6
// and 7.1). The server library takes lines that end without a CR, blanks behind the size of
// a chunk, and a body in chunks that the end of the connection cuts off behind the last
// size.
type framing struct {
	part     part
	line     []byte // the beginning of a line whose end has not arrived
	begun    bool   // the request line was there: blank lines before it are none of the head
	length   int    // of the body, as the head says
	chunked  bool
	missing  int // bytes of the body or the chunk
	complete int // requests that have arrived whole
}

// follow takes what arrived next and returns where in it a line of a head ends without a
// CR, -1 if none does.
func (f *framing) follow(b []byte) int {
	for i := 0; i < len(b); {
		switch f.part {
		case astray:
			return -1
		case inBody, inChunk:
			n := min(f.missing, len(b)-i)
			f.missing -= n
			i += n
			if f.missing > 0 {
				return -1
			}
			if f.part == inBody {
				f.end()
			} else {
				f.part = afterChunk
			}
			continue
		}
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			if f.line = append(f.line, b[i:]...); len(f.line) > maxHead {
				f.part, f.line = astray, nil
			}
			return -1
		}
		line, ended := bytes.CutSuffix(append(f.line, b[i:i+n]...), []byte("\r"))
		f.line = f.line[:0]
		switch {
		case ended:
			f.take(line)
		case f.part == inHead:
			return i + n
		default:
			f.part = astray
		}
		i += n + 1
	}
	return -1
}

// take follows a line of a head or of the framing of chunks, without its end.
func (f *framing) take(line []byte) {
	switch f.part {
	case inHead:
		f.takeHead(line)
	case inChunkSize:
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(size), 16, 31)
		switch {
		case err != nil:
			f.part = astray
		case n == 0:
			f.part = inTrailer
		default:
			f.part, f.missing = inChunk, int(n)
		}
	case afterChunk:
		f.part = inChunkSize
		if len(line) > 0 {
			f.part = astray
		}
	case inTrailer:
		name, _, ok := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0:
			f.end()
		case !ok || len(name) == 0 || !isToken(name):
			f.part = astray
		}
	}
}

// takeHead follows a line of a head. What a head says twice or not clearly is refused by
// the library and by ambiguity.
func (f *framing) takeHead(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case !f.begun:
		f.begun = len(line) > 0
	case len(line) == 0 && f.chunked:
		f.part = inChunkSize
	case len(line) == 0 && f.length > 0:
		f.part, f.missing = inBody, f.length
	case len(line) == 0:
		f.end()
	case bytes.EqualFold(name, []byte(fiber.HeaderTransferEncoding)):
		f.chunked = true
	case bytes.EqualFold(name, []byte(fiber.HeaderContentLength)):
		n, err := strconv.ParseUint(string(bytes.Trim(value, " \t")), 10, 31)
		if f.length = int(n); err != nil {
			f.part = astray
		}
	}
}

// end notes that a request has arrived whole; the next one may follow.
func (f *framing) end() { *f = framing{line: f.line, complete: f.complete + 1} }

// ambiguity explains why two parsers could read a request in two ways, "" if they could not.
// It examines the head as it was sent: the library joins folded lines, takes lines without a
// CR, reads "Transfer-Encoding: identity" as no body, and drops a Content-Length that comes
// with a Transfer-Encoding (RFC 9112, 2.2, 5.1, 5.2, 6.1).
func ambiguity(h *fasthttp.RequestHeader) string {
	length, chunked := false, false
	for line := range bytes.Lines(h.RawHeaders()) {
		line, terminated := bytes.CutSuffix(line, []byte("\r\n"))
		switch {
		case !terminated:
			return "A header line ends without a carriage return."
		case len(line) == 0:
			continue
		case line[0] == ' ' || line[0] == '\t':
			return "A header line is folded."
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(name) == 0 || !isToken(name):
			return "A header name holds what no name may hold."
		case bytes.EqualFold(name, []byte(fiber.HeaderContentLength)):
			length = true
		case bytes.EqualFold(name, []byte(fiber.HeaderTransferEncoding)):
			if chunked || !bytes.EqualFold(bytes.Trim(value, " \t"), []byte("chunked")) || !h.IsHTTP11() {
				return "Transfer-Encoding must be chunked, once, in HTTP/1.1."
			}
			chunked = true
		}
	}
	if length && chunked {
		return "Content-Length and Transfer-Encoding exclude each other."
	}
	return ""
}

// isToken reports whether a name is a token of RFC 9110, 5.6.2.
func isToken(name []byte) bool {
	for _, b := range name {
		if !(b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0) {
			return false
		}
	}
	return true
}

// headErrorHandler answers a request that the library could not read, and closes the
// connection. The library's error quotes the request, which may hold a token.
func headErrorHandler(o Options) func(*fasthttp.RequestCtx, error) {
	return func(c *fasthttp.RequestCtx, err error) {
		status, text := fiber.StatusBadRequest, "The request cannot be read."
		_, isLong := errors.AsType[*fasthttp.ErrSmallBuffer](err)
		network, failed := errors.AsType[net.Error](err)
		switch {
		case failed && network.Timeout():
			status, text = fiber.StatusRequestTimeout, "Request Timeout"
		case isLong:
			status, text = fiber.StatusRequestHeaderFieldsTooLarge, "Request Header Fields Too Large"
		case errors.Is(err, errBareLF):
			text = "A header line ends without a carriage return."
		}
		c.Response.Reset()
		o.setDefaults(&c.Response.Header)
		closeAfterReply(c)
		c.SetStatusCode(status)
		c.SetContentType(fiber.MIMEApplicationJSON)
		id := o.nextID()
		c.Response.Header.Set(fiber.HeaderXRequestID, id)
		if o.AccessLog {
			remote, _ := netip.AddrFromSlice(c.RemoteIP())
			o.Logger.Info("request", "request_id", id, "client", remote.Unmap().String(), "status", status, "error", text)
		}
		c.SetBodyString(`{"message":"` + text + `"}`)
	}
}
