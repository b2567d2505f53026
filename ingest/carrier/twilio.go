package carrier

import (
	"crypto/sha1" //nolint:gosec // the carrier's algorithm
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/inbound"
)

// parseTwilio parses the parameters of Twilio's webhook for incoming messages (Messaging
// webhooks, "Parameters in Twilio's request"): a form or a query. Twilio has joined the
// parts.
func parseTwilio(f *fieldReader) ([]inbound.Message, error) {
	id := f.first("MessageSid", "SmsMessageSid", "SmsSid")
	f.object["MessageSid"] = id
	if status := f.first("MessageStatus", "SmsStatus"); !f.has("Body") && status != "" && !strings.HasPrefix(status, "receiv") {
		return nil, receiptNotice(id, status)
	}
	m := inbound.Message{CarrierID: f.required("MessageSid", maxName), Reference: f.optional("AccountSid", maxName)}
	f.setAddresses(&m, "From", "To")
	f.setText(&m, "Body", mediaURLs(f.object, "MediaUrl"))
	return f.message(m)
}

// mediaURLs returns the URLs of a message's media from fields with numbered names. The first number
// is 0 or 1, and may differ from the documentation of the provider.
func mediaURLs(o object, names ...string) (urls []string) {
	for i := range 101 {
		for _, name := range names {
			if u := o.text(name + strconv.Itoa(i)); u != "" {
				urls = append(urls, u)
			}
		}
	}
	return urls
}

// noInstructions is the answer without instructions in the XML of Twilio and Plivo.
const noInstructions = `<?xml version="1.0" encoding="UTF-8"?><Response></Response>`

func answerXML(mime string) func(c *fiber.Ctx, id string) error {
	return func(c *fiber.Ctx, _ string) error {
		c.Set(fiber.HeaderContentType, mime)
		return c.Status(fiber.StatusOK).SendString(noInstructions)
	}
}

// verifyTwilio checks X-Twilio-Signature: the base64 of an HMAC-SHA1 with the account's
// auth token over the URL and the names and values of a form, ordered by name. The query
// parameter bodySHA256 has the SHA-256 of any other body. The signature does not cover a time:
// a repetition is recognized by its MessageSid.
func verifyTwilio(r *SignedRequest, secret string) error {
	signature := r.Header("X-Twilio-Signature")
	if signature == "" {
		return httpd.ErrUnsigned
	}
	fields, err := r.form()
	if err != nil {
		return err
	}
	if fields == nil && len(r.Body) > 0 {
		sum := sha256.Sum256(r.Body)
		if !equalHex(r.query().Get("bodySHA256"), sum[:]) {
			return errSignature
		}
	}
	// Concatenate names and values; the values of a name are sorted, without duplicates.
	var tail strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		for _, v := range slices.Compact(slices.Sorted(slices.Values(fields[name]))) {
			tail.WriteString(name + v)
		}
	}
	for _, url := range twilioURLs(r) {
		if equalBase64(signature, mac(sha1.New, secret, url+tail.String())) {
			return nil
		}
	}
	return errSignature
}

// twilioURLs returns the URLs that Twilio may have signed: with and without the port, and
// with the user and password if the request has them.
func twilioURLs(r *SignedRequest) []string {
	scheme, host, _ := strings.Cut(r.URL, "://")
	path := ""
	if i := strings.IndexAny(host, "/?"); i >= 0 {
		host, path = host[:i], host[i:]
	}
	hosts := []string{host}
	bare := host
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		bare = host[:i]
		hosts = append(hosts, bare)
	}
	defaultPort := map[string]string{"https": ":443", "http": ":80"}[strings.ToLower(scheme)]
	hosts = append(hosts, bare+defaultPort)
	var urls []string
	users := []string{""}
	if scheme, encoded, _ := strings.Cut(r.Header("Authorization"), " "); strings.EqualFold(scheme, "Basic") {
		if pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded)); err == nil {
			users = append(users, string(pair)+"@")
		}
	}
	for _, user := range users {
		for _, h := range hosts {
			urls = append(urls, scheme+"://"+user+h+path)
		}
	}
	return urls
}
