package httpd

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// ErrBodyTooLarge means that a body is over the limit once it is inflated.
var ErrBodyTooLarge = fiber.NewError(fiber.StatusRequestEntityTooLarge, "Request Entity Too Large")

// Body returns the request's body, inflated if need be, never more than limit
// bytes. It is valid until the handler returns.
func Body(c *fiber.Ctx, limit int) ([]byte, error) {
	raw := c.Request().Body()
	encoding := c.Get(fiber.HeaderContentEncoding)
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		if len(raw) > limit {
			return nil, ErrBodyTooLarge
		}
		return raw, nil
	}
	var r io.Reader
	var err error
	switch strings.ToLower(encoding) {
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(raw))
	case "deflate":
		r, err = inflater(raw)
	default:
		return nil, fiber.NewError(fiber.StatusUnsupportedMediaType, "Content-Encoding "+strings.ToValidUTF8(encoding, "?")+" is not supported.")
	}
	if err != nil {
		return nil, fiber.NewError(fiber.StatusBadRequest, "The body is not what Content-Encoding says.")
	}
	return readBounded(r, limit)
}

// inflater reads deflate as RFC 9110 has it, in a zlib wrapper, and as half of
// all clients send it, without.
func inflater(raw []byte) (io.Reader, error) {
	if len(raw) >= 2 && raw[0]&0x0f == 8 && (uint(raw[0])<<8|uint(raw[1]))%31 == 0 {
		return zlib.NewReader(bytes.NewReader(raw))
	}
	return flate.NewReader(bytes.NewReader(raw)), nil
}

func readBounded(r io.Reader, limit int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fiber.NewError(fiber.StatusBadRequest, "The body is not what Content-Encoding says.")
	}
	if len(b) > limit {
		return nil, ErrBodyTooLarge
	}
	return b, nil
}
