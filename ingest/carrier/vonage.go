package carrier

import (
	"bytes"
	"crypto/md5"  //nolint:gosec // one of the carrier's algorithms
	"crypto/sha1" //nolint:gosec // likewise
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders/jwt"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
)

// parseVonage parses an inbound message of Vonage's SMS API (formerly Nexmo), as a query,
// a form or JSON, or of its Messages API. The SMS API sends the parts of a message
// separately, in any order.
func parseVonage(f *fieldReader) ([]inbound.Message, error) {
	if status := f.text("status"); status != "" && !f.has("text") && !f.has("data") {
		return nil, receiptNotice(f.first("messageId", "message_uuid"), status)
	}
	if f.has("message_uuid") {
		m := inbound.Message{CarrierID: f.required("message_uuid", maxName)}
		setSentAt(&m, "timestamp", f.text("timestamp"), parseTime)
		f.setAddresses(&m, "from", "to")
		var urls, captions []string
		for _, kind := range []string{"image", "audio", "video", "file", "vcard"} { // of an MMS
			urls = append(urls, urlsOf(f.child(kind))...)
			if caption := f.child(kind).text("caption"); caption != "" {
				captions = append(captions, caption)
			}
		}
		if len(captions) > 0 && !f.has("text") {
			f.object["text"] = strings.Join(captions, "\n")
		}
		f.setText(&m, "text", urls)
		return f.message(m)
	}
	m := inbound.Message{CarrierID: f.required("messageId", maxName), UDH: f.hex("udh", maxUDH)}
	setSentAt(&m, "message-timestamp", f.text("message-timestamp"), parseTime)
	f.setAddresses(&m, "msisdn", "to")
	// Read the number of the part. The reference may be any text.
	if f.optional("concat", maxName) == "true" {
		m.Part = &inbound.Part{Kind: inbound.NamedReference(f.required("concat-ref", maxName)), Total: f.integer("concat-total", 1, 255)}
		m.Part.Number = f.integer("concat-part", 1, max(m.Part.Total, 1))
	}
	m.Stat = statusOf(&m)
	switch f.text("type") {
	case "binary":
		m.Coding, m.Data = sms.Binary, f.hex("data", maxText)
	case "unicode":
		m.Coding, m.Text = sms.UCS2, f.utf8Text("text")
	default:
		f.setText(&m, "text", nil)
	}
	return f.message(m)
}

// verifyVonage checks the JWT in Authorization, or the parameter sig.
func verifyVonage(r *SignedRequest, secret string) error {
	if scheme, token, _ := strings.Cut(r.Header("Authorization"), " "); strings.EqualFold(scheme, "Bearer") && isJWT(token) {
		var claims struct {
			IssuedAt    float64 `json:"iat"` // seconds since 1970
			Expires     float64 `json:"exp"`
			PayloadHash string  `json:"payload_hash"` // hex SHA-256
		}
		switch err := jwt.Verify(strings.TrimSpace(token), secret, &claims); {
		case errors.Is(err, jwt.ErrSignature):
			return errSignature
		case err != nil:
			return fmt.Errorf("%w: %w", errUnread, err)
		}
		now := float64(r.Now.UnixMilli()) / 1000
		if claims.Expires != 0 && now > claims.Expires+maxSkew.Seconds() {
			return errStale
		}
		if age := now - claims.IssuedAt; age > maxAge.Seconds() || age < -maxSkew.Seconds() {
			return errStale
		}
		return verifyVonagePayload(r, claims.PayloadHash)
	}
	// Check sig: a hash over &name=value of all parameters except sig, ordered by name,
	// with & and = in names and values replaced by _. The hash is an HMAC with MD5, SHA-1,
	// SHA-256 or SHA-512, according to its length, or the MD5 of the text and the secret.
	fields := vonageParameters(r)
	signature := fields["sig"]
	if signature == "" {
		return httpd.ErrUnsigned
	}
	delete(fields, "sig")
	var b strings.Builder
	escaper := strings.NewReplacer("&", "_", "=", "_")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		b.WriteString("&" + escaper.Replace(name) + "=" + escaper.Replace(fields[name]))
	}
	text := b.String()
	h := map[int]func() hash.Hash{2 * md5.Size: md5.New, 2 * sha1.Size: sha1.New, 2 * sha256.Size: sha256.New, 2 * sha512.Size: sha512.New}[len(signature)]
	sum := md5.Sum([]byte(text + secret)) //nolint:gosec // the carrier's default
	if h == nil || !equalHex(signature, mac(h, secret, text)) && !equalHex(signature, sum[:]) {
		return errSignature
	}
	timestamp := fields["timestamp"]
	if t := parseTime(timestamp); !t.IsZero() {
		timestamp = strconv.FormatInt(t.Unix(), 10)
	}
	return checkAge(timestamp, r.Now)
}

// verifyVonagePayload checks the hash of a post, which covers the body, or the parameters as a
// JSON object in the order of the post.
func verifyVonagePayload(r *SignedRequest, want string) error {
	raw := sha256.Sum256(r.Body)
	if len(r.Body) > 0 && equalHex(want, raw[:]) {
		return nil
	}
	text := string(r.Body)
	if len(r.Body) == 0 {
		_, text, _ = strings.Cut(r.URL, "?")
	} else if !isForm(r.ContentType) {
		return errSignature
	}
	doc, err := orderedObject(text)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(doc); !equalHex(want, sum[:]) {
		return errSignature
	}
	return nil
}

// orderedObject converts URL-encoded parameters to a JSON object without spaces.
func orderedObject(text string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for pair := range strings.SplitSeq(text, "&") {
		name, value, _ := strings.Cut(pair, "=")
		for i, s := range []string{name, value} {
			decoded, err := url.QueryUnescape(s)
			if err != nil {
				return nil, fmt.Errorf("%w: the parameters", errUnread)
			}
			quoted, err := relay.EncodeJSON(decoded)
			if err != nil {
				return nil, fmt.Errorf("%w: the parameters", errUnread)
			}
			b.WriteString([]string{",", ":"}[i])
			b.Write(quoted)
		}
	}
	b.WriteByte('}')
	return bytes.Replace(b.Bytes(), []byte("{,"), []byte("{"), 1), nil
}

// vonageParameters returns the parameters of the query, the form or the JSON body, or an empty map
// if they are invalid.
func vonageParameters(r *SignedRequest) map[string]string {
	parameters := make(map[string]string)
	if len(r.Body) > 0 && !isForm(r.ContentType) {
		o, _ := jsonObject(r.Body)
		for name := range o {
			parameters[name] = o.text(name)
		}
		return parameters
	}
	fields, err := r.form()
	if fields == nil && err == nil {
		fields = r.query()
	}
	for name := range fields {
		parameters[name] = fields.Get(name)
	}
	return parameters
}
