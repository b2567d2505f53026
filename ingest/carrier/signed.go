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
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
)

// The reasons for which a signature is not believed. None holds a secret or
// what was expected.
var (
	errSignature = errors.New("carrier: the signature does not match")
	errStale     = errors.New("carrier: the signature has expired")
	errUnread    = errors.New("carrier: what is signed cannot be read")
)

// maxAge is how long a signature is believed. Carriers repeat a post for a day
// or two with the signature that they made at first; what is repeated within
// that time is known by its id, which is remembered for a week at least.
const maxAge = 48 * time.Hour

// maxSkew is how far a carrier's clock may be ahead of ours.
const maxSkew = 5 * time.Minute

// Signed is a request as its signature sees it.
type Signed struct {
	Method string
	// URL is the address that the carrier called: the public URL of the
	// gateway, whatever a proxy made of it, and the path and query as sent.
	URL         string
	ContentType string
	// Header returns a header field, "" if there is none.
	Header func(name string) string
	Body   []byte // as it was sent
	Now    time.Time
}

// signedOf is a request's Signed; it points into the request.
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

// base is the URL without its query.
func (r *Signed) base() string {
	before, _, _ := strings.Cut(r.URL, "?")
	return before
}

// query is the URL's; what cannot be read of it is left out, and then the
// signature does not match.
func (r *Signed) query() url.Values {
	_, after, _ := strings.Cut(r.URL, "?")
	q, _ := url.ParseQuery(after)
	return q
}

// form is the body's fields, none if it is no form.
func (r *Signed) form() (url.Values, error) {
	if len(r.Body) == 0 || !isForm(r.ContentType) {
		return nil, nil
	}
	v, err := url.ParseQuery(string(r.Body))
	if err != nil {
		return nil, fmt.Errorf("%w: the form", errUnread)
	}
	return v, nil
}

func isForm(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(media), fiber.MIMEApplicationForm)
}

// mac is the keyed hash of a text.
func mac(h func() hash.Hash, secret, text string) []byte {
	m := hmac.New(h, []byte(secret))
	m.Write([]byte(text))
	return m.Sum(nil)
}

// sameBase64 compares what was sent with a digest in constant time.
func sameBase64(sent string, digest []byte) bool {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(sent))
	return err == nil && subtle.ConstantTimeCompare(b, digest) == 1
}

// sameHex is sameBase64 for hex digits of either case.
func sameHex(sent string, digest []byte) bool {
	b, err := hex.DecodeString(strings.TrimSpace(sent))
	return err == nil && subtle.ConstantTimeCompare(b, digest) == 1
}

// believed reports whether one of the signatures in a list separated by commas
// is the digest.
func believed(list string, digest []byte) bool {
	for one := range strings.SplitSeq(list, ",") {
		if sameBase64(one, digest) {
			return true
		}
	}
	return false
}

// recent tells whether a moment, in seconds since 1970, lies near enough to now.
func recent(seconds string, now time.Time) error {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 || n > 1<<38 {
		return errStale
	}
	if age := now.Sub(time.Unix(n, 0)); age > maxAge || age < -maxSkew {
		return errStale
	}
	return nil
}
