package carrier

import (
	"crypto/hmac"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/ingest/httpd"
)

// Errors of signatures. They contain neither a secret nor the expected signature.
var (
	errSignature = errors.New("carrier: the signature does not match")
	errStale     = errors.New("carrier: the signature has expired")
	errUnread    = errors.New("carrier: the signed content cannot be parsed")
)

// maxAge is the maximum age of a signature. Carriers repeat a post with its first signature for a
// day or two. A repetition is recognized by its id, which is stored for at least a week.
const maxAge = 48 * time.Hour

// maxSkew is the maximum time by which a carrier's clock may be ahead of the gateway's clock.
const maxSkew = 5 * time.Minute

// SignedRequest has the parts of a request that a signature may cover.
type SignedRequest struct {
	Method string
	// URL is the URL that the carrier called: the gateway's public URL with the path and
	// query as sent. A proxy may have changed the host of the request.
	URL         string
	ContentType string
	// Header returns a header field, or "" if it is missing.
	Header func(name string) string
	Body   []byte // as it was sent
	Now    time.Time
}

// signedOf returns the SignedRequest of a request, which shares memory with the request.
func (s *Surface) signedOf(c *fiber.Ctx) (*SignedRequest, error) {
	body, err := httpd.RawBody(c, s.opts.BodyLimit)
	if err != nil {
		return nil, err
	}
	uri := c.Request().URI()
	signedURL := s.opts.PublicURL + string(uri.PathOriginal())
	if query := uri.QueryString(); len(query) > 0 {
		signedURL += "?" + string(query)
	}
	return &SignedRequest{
		Method: c.Method(), URL: signedURL, ContentType: c.Get(fiber.HeaderContentType),
		Header: func(name string) string { return c.Get(name) }, Body: body, Now: s.opts.Now(),
	}, nil
}

func (s *SignedRequest) urlWithoutQuery() string {
	base, _, _ := strings.Cut(s.URL, "?")
	return base
}

// query returns the parameters of the URL. It drops invalid parameters, so that the signature does
// not match.
func (s *SignedRequest) query() url.Values {
	_, query, _ := strings.Cut(s.URL, "?")
	values, _ := url.ParseQuery(query)
	return values
}

func (s *SignedRequest) form() (url.Values, error) {
	if len(s.Body) == 0 || !isForm(s.ContentType) {
		return nil, nil
	}
	v, err := url.ParseQuery(string(s.Body))
	if err != nil {
		return nil, fmt.Errorf("%w: the form", errUnread)
	}
	return v, nil
}

func isForm(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(media), fiber.MIMEApplicationForm)
}

func isJWT(text string) bool { return strings.Count(text, ".") == 2 && strings.HasPrefix(text, "eyJ") }

func mac(h func() hash.Hash, secret, text string) []byte {
	m := hmac.New(h, []byte(secret))
	m.Write([]byte(text))
	return m.Sum(nil)
}

// equalBase64 compares a signature with a digest in constant time.
func equalBase64(signature string, digest []byte) bool {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(signature))
	return err == nil && subtle.ConstantTimeCompare(b, digest) == 1
}

// equalHex compares a signature in hex digits of either case with a digest in constant time.
func equalHex(signature string, digest []byte) bool {
	b, err := hex.DecodeString(strings.TrimSpace(signature))
	return err == nil && subtle.ConstantTimeCompare(b, digest) == 1
}

// anyEqualBase64 reports whether equalBase64 returns true for one of several signatures, separated
// by commas.
func anyEqualBase64(list string, digest []byte) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(sent string) bool { return equalBase64(sent, digest) })
}

// checkAge returns errStale unless a time in seconds since 1970 is within maxAge and maxSkew of now.
func checkAge(seconds string, now time.Time) error {
	n, err := decimal.PlainInt(seconds)
	if err != nil || n < 0 || n > 1<<38 {
		return errStale
	}
	if age := now.Sub(time.Unix(n, 0)); age > maxAge || age < -maxSkew {
		return errStale
	}
	return nil
}
