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
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/ingest/httpd"
)

// The errors of signatures. None contains a secret or the expected signature.
var (
	errSignature = errors.New("carrier: the signature does not match")
	errStale     = errors.New("carrier: the signature has expired")
	errUnread    = errors.New("carrier: what is signed cannot be read")
)

// maxAge is the maximum age of a signature. Carriers repeat a post for a day or two with
// the first signature; a repetition is recognized by its id, which is kept for a week at
// least.
const maxAge = 48 * time.Hour

// maxSkew is the largest time by which a carrier's clock may be ahead of ours.
const maxSkew = 5 * time.Minute

// Signed is the parts of a request that are signed.
type Signed struct {
	Method string
	// URL is the URL that the carrier called: the public URL of the gateway, which a
	// proxy may have changed, with the path and query as sent.
	URL         string
	ContentType string
	// Header returns a header field, "" if there is none.
	Header func(name string) string
	Body   []byte // as it was sent
	Now    time.Time
}

// signedOf returns a request's Signed, which shares memory with the request.
func (s *Surface) signedOf(c *fiber.Ctx) (*Signed, error) {
	body, err := httpd.RawBody(c, s.bodyLimit)
	if err != nil {
		return nil, err
	}
	uri := c.Request().URI()
	address := s.publicURL + string(uri.PathOriginal())
	if query := uri.QueryString(); len(query) > 0 {
		address += "?" + string(query)
	}
	return &Signed{
		Method: c.Method(), URL: address, ContentType: c.Get(fiber.HeaderContentType),
		Header: func(name string) string { return c.Get(name) }, Body: body, Now: s.now(),
	}, nil
}

// base returns the URL without its query.
func (s *Signed) base() string {
	prefix, _, _ := strings.Cut(s.URL, "?")
	return prefix
}

// query returns the URL's query without invalid parameters; if there are any, the
// signature does not match.
func (s *Signed) query() url.Values {
	_, cursor, _ := strings.Cut(s.URL, "?")
	q, _ := url.ParseQuery(cursor)
	return q
}

// form returns the fields of a form; nil for another body.
func (s *Signed) form() (url.Values, error) {
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

// isJWT reports whether a credential is a signed JSON Web Token.
func isJWT(text string) bool { return strings.Count(text, ".") == 2 && strings.HasPrefix(text, "eyJ") }

// mac returns the HMAC of a text.
func mac(h func() hash.Hash, secret, text string) []byte {
	m := hmac.New(h, []byte(secret))
	m.Write([]byte(text))
	return m.Sum(nil)
}

// sameBase64 compares a signature with a digest in constant time.
func sameBase64(sent string, digest []byte) bool {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(sent))
	return err == nil && subtle.ConstantTimeCompare(b, digest) == 1
}

// sameHex is sameBase64 for hex digits of either case.
func sameHex(sent string, digest []byte) bool {
	b, err := hex.DecodeString(strings.TrimSpace(sent))
	return err == nil && subtle.ConstantTimeCompare(b, digest) == 1
}

// believed reports whether one of the signatures in a comma-separated list is the
// digest.
func believed(list string, digest []byte) bool {
	for text := range strings.SplitSeq(list, ",") {
		if sameBase64(text, digest) {
			return true
		}
	}
	return false
}

// recent checks that a time, in seconds since 1970, is close enough to now.
func recent(seconds string, now time.Time) error {
	n, err := decimal.Digits(seconds)
	if err != nil || n < 0 || n > 1<<38 {
		return errStale
	}
	if age := now.Sub(time.Unix(n, 0)); age > maxAge || age < -maxSkew {
		return errStale
	}
	return nil
}
