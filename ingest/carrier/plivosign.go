package carrier

import (
	"crypto/sha256"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/penstock/penstock/ingest/httpd"
)

// verifyPlivo checks X-Plivo-Signature-V3, or V2 where that is all there is:
// the base64 of HMAC-SHA256 by the auth token over the address and a nonce, and
// in V3 the parameters too. The fields named Ma are signed by the main account
// of a subaccount. V2 does not cover the parameters, so that a nonce is good for
// one body only.
func (n *nonces) verifyPlivo(r *Signed, secret string) error {
	for _, account := range []string{"", "Ma-"} {
		if err := verifyPlivoV3(r, account, secret); err != httpd.ErrUnsigned { //nolint:errorlint // its own
			return err
		}
	}
	for _, account := range []string{"", "Ma-"} {
		sent, nonce := r.Header("X-Plivo-Signature-"+account+"V2"), r.Header("X-Plivo-Signature-V2-Nonce")
		switch {
		case sent == "" || nonce == "":
			continue
		case !believed(sent, mac(sha256.New, secret, r.base()+nonce)):
			return errSignature
		case !n.first(nonce, r):
			return errStale
		}
		return nil
	}
	return httpd.ErrUnsigned
}

func verifyPlivoV3(r *Signed, account, secret string) error {
	sent, nonce := r.Header("X-Plivo-Signature-"+account+"V3"), r.Header("X-Plivo-Signature-V3-Nonce")
	if sent == "" || nonce == "" {
		return httpd.ErrUnsigned
	}
	fields, err := r.form()
	if err != nil {
		return err
	}
	if fields == nil && len(r.Body) > 0 {
		return errUnread // nothing would cover it
	}
	if !believed(sent, mac(sha256.New, secret, plivoText(r, fields)+"."+nonce)) {
		return errSignature
	}
	return nil
}

// plivoText is the address with its parameters in order, and those of the form
// after it, each name and value decoded.
func plivoText(r *Signed, fields url.Values) string {
	text, query := r.base(), sortedPairs(r.query(), "=", "&")
	if query != "" || len(fields) > 0 {
		text += "?" + query
	}
	if query != "" && len(fields) > 0 {
		text += "."
	}
	return text + sortedPairs(fields, "", "")
}

func sortedPairs(v url.Values, equals, between string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		for _, one := range slices.Sorted(slices.Values(v[name])) {
			pairs = append(pairs, name+equals+one)
		}
	}
	return strings.Join(pairs, between)
}
