package carrier

import (
	"crypto/sha1" //nolint:gosec // the carrier's algorithm
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/penstock/penstock/ingest/httpd"
)

// verifyTwilio checks X-Twilio-Signature: the base64 of HMAC-SHA1 by the
// account's auth token over the URL and, of a form, every name and value in
// order of the names. Any other body is signed by its SHA-256 in the query,
// bodySHA256. It has no time: what is repeated is known by its MessageSid.
func verifyTwilio(r *Signed, secret string) error {
	sent := r.Header("X-Twilio-Signature")
	if sent == "" {
		return httpd.ErrUnsigned
	}
	fields, err := r.form()
	if err != nil {
		return err
	}
	if fields == nil && len(r.Body) > 0 {
		sum := sha256.Sum256(r.Body)
		if !sameHex(r.query().Get("bodySHA256"), sum[:]) {
			return errSignature
		}
	}
	tail := twilioFields(fields)
	for _, address := range twilioURLs(r) {
		if sameBase64(sent, mac(sha1.New, secret, address+tail)) {
			return nil
		}
	}
	return errSignature
}

// twilioFields writes names and values one after the other; the values of a
// name in order, each once.
func twilioFields(fields url.Values) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		for _, v := range slices.Compact(slices.Sorted(slices.Values(fields[name]))) {
			b.WriteString(name)
			b.WriteString(v)
		}
	}
	return b.String()
}

// twilioURLs are the forms of the address that Twilio may have signed: with the
// port and without, and with the user and password of a URL that holds them.
func twilioURLs(r *Signed) []string {
	scheme, rest, _ := strings.Cut(r.URL, "://")
	host, path := rest, ""
	if at := strings.IndexAny(rest, "/?"); at >= 0 {
		host, path = rest[:at], rest[at:]
	}
	hosts := []string{host}
	bare := host
	if at := strings.LastIndexByte(host, ':'); at > strings.LastIndexByte(host, ']') {
		bare = host[:at]
		hosts = append(hosts, bare)
	}
	standard := map[string]string{"https": ":443", "http": ":80"}[strings.ToLower(scheme)]
	hosts = append(hosts, bare+standard)
	var out []string
	for _, user := range userinfo(r) {
		for _, h := range hosts {
			out = append(out, scheme+"://"+user+h+path)
		}
	}
	return out
}

// userinfo is what may stand before the host: nothing, or what the request
// carries as Basic.
func userinfo(r *Signed) []string {
	scheme, encoded, _ := strings.Cut(r.Header("Authorization"), " ")
	if !strings.EqualFold(scheme, "Basic") {
		return []string{""}
	}
	pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return []string{""}
	}
	return []string{"", string(pair) + "@"}
}
