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

// part is the part of a request to which the next byte of a connection belongs.
type part int

const (
	inHead part = iota
	inBody
	inChunkSize
	inChunk
	afterChunk // the line end after a chunk
	inTrailer
	// invalidFraming means that the request is refused and its connection closed.
	invalidFraming
)

// framing tracks the requests of a connection as their bytes arrive (RFC 9112, sections 6 and
// 7.1). It is stricter than the server library, which accepts lines without a CR, spaces after a
// chunk size, and a chunked body without the lines after its last chunk size.
type framing struct {
	part           part
	line           []byte // the received part of an incomplete line
	hasRequestLine bool   // false while only empty lines have arrived, which do not end the head
	contentLength  int
	chunked        bool
	missingBytes   int // bytes of the body or chunk that have not arrived
	completeCount  int // the number of requests that have arrived completely
}

// follow processes the next bytes. It returns the offset of the first LF without a CR in a head,
// or -1.
func (f *framing) follow(b []byte) int {
	for i := 0; i < len(b); {
		switch f.part {
		case invalidFraming:
			return -1
		case inBody, inChunk:
			n := min(f.missingBytes, len(b)-i)
			f.missingBytes -= n
			i += n
			if f.missingBytes > 0 {
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
				f.part, f.line = invalidFraming, nil
			}
			return -1
		}
		line := b[i : i+n]
		if len(f.line) > 0 {
			f.line = append(f.line, line...)
			line, f.line = f.line, f.line[:0]
		}
		line, hasCR := bytes.CutSuffix(line, []byte("\r"))
		switch {
		case hasCR:
			f.processLine(line)
		case f.part == inHead:
			return i + n
		default:
			f.part = invalidFraming
		}
		i += n + 1
	}
	return -1
}

// processLine processes a line of a head or of a chunked body, without its CRLF.
func (f *framing) processLine(line []byte) {
	switch f.part {
	case inHead:
		f.processHeadLine(line)
	case inChunkSize:
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(size), 16, 31)
		switch {
		case err != nil:
			f.part = invalidFraming
		case n == 0:
			f.part = inTrailer
		default:
			f.part, f.missingBytes = inChunk, int(n)
		}
	case afterChunk:
		f.part = inChunkSize
		if len(line) > 0 {
			f.part = invalidFraming
		}
	case inTrailer:
		name, _, ok := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0:
			f.end()
		case !ok || len(name) == 0 || !isToken(name):
			f.part = invalidFraming
		}
	}
}

// processHeadLine processes a line of a head. The library and ambiguity refuse repeated and
// ambiguous headers.
func (f *framing) processHeadLine(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case !f.hasRequestLine:
		f.hasRequestLine = len(line) > 0
	case len(line) == 0 && f.chunked:
		f.part = inChunkSize
	case len(line) == 0 && f.contentLength > 0:
		f.part, f.missingBytes = inBody, f.contentLength
	case len(line) == 0:
		f.end()
	case bytes.EqualFold(name, []byte(fiber.HeaderTransferEncoding)):
		f.chunked = true
	case bytes.EqualFold(name, []byte(fiber.HeaderContentLength)):
		n, err := strconv.ParseUint(string(bytes.Trim(value, " \t")), 10, 31)
		if f.contentLength = int(n); err != nil {
			f.part = invalidFraming
		}
	}
}

// end prepares for the next request after a complete one.
func (f *framing) end() { *f = framing{line: f.line, completeCount: f.completeCount + 1} }

// ambiguity returns the reason why parsers may read a request differently, or "". It examines the
// head as it was sent, because the library joins folded lines, accepts lines without a CR, reads
// "Transfer-Encoding: identity" as no body, and ignores a Content-Length if there is also a
// Transfer-Encoding (RFC 9112, sections 2.2, 5.1, 5.2 and 6.1).
func ambiguity(h *fasthttp.RequestHeader) string {
	hasLength, chunked := false, false
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
			return "A header name has an invalid character."
		case bytes.EqualFold(name, []byte(fiber.HeaderContentLength)):
			hasLength = true
		case bytes.EqualFold(name, []byte(fiber.HeaderTransferEncoding)):
			if chunked || !bytes.EqualFold(bytes.Trim(value, " \t"), []byte("chunked")) || !h.IsHTTP11() {
				return "Transfer-Encoding must be chunked, once, in HTTP/1.1."
			}
			chunked = true
		}
	}
	if hasLength && chunked {
		return "Content-Length and Transfer-Encoding exclude each other."
	}
	return ""
}

// isToken reports whether a name has only characters of a token (RFC 9110, section 5.6.2).
func isToken(name []byte) bool {
	for _, b := range name {
		if !(b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0) {
			return false
		}
	}
	return true
}

// headErrorHandler returns a handler that answers requests that the library cannot read, and
// closes their connection. The answer omits the library's error, which quotes the request.
func headErrorHandler(o Options) func(*fasthttp.RequestCtx, error) {
	return func(c *fasthttp.RequestCtx, err error) {
		status, text := fiber.StatusBadRequest, "The request cannot be read."
		_, isTooLong := errors.AsType[*fasthttp.ErrSmallBuffer](err)
		netErr, isNetErr := errors.AsType[net.Error](err)
		switch {
		case isNetErr && netErr.Timeout():
			status, text = fiber.StatusRequestTimeout, "Request Timeout"
		case isTooLong:
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
