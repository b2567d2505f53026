package httpd

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// ambiguity explains why two parsers could read a request in two ways, "" if they could not.
// It looks at the head as it was sent: the library joins folded lines, takes lines without a
// CR, reads "Transfer-Encoding: identity" as no body, and drops a Content-Length beside a
// Transfer-Encoding (RFC 9112, 2.2, 5.1, 5.2, 6.1).
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
