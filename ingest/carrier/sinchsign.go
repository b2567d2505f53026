package carrier

import (
	"crypto/sha256"
	"crypto/sha512"
	"hash"

	"github.com/penstock/penstock/ingest/httpd"
)

// verifySinch checks X-Sinch-Webhook-Signature of the Conversation API: the
// base64 of an HMAC by the webhook's secret over the body, a nonce and the time,
// with dots between them. The SMS API signs nothing and takes Basic instead.
func verifySinch(r *Signed, secret string) error {
	const name = "X-Sinch-Webhook-Signature"
	sent, nonce, at := r.Header(name), r.Header(name+"-Nonce"), r.Header(name+"-Timestamp")
	if sent == "" || nonce == "" || at == "" {
		return httpd.ErrUnsigned
	}
	h := map[string]func() hash.Hash{"": sha256.New, "HmacSHA256": sha256.New, "HmacSHA512": sha512.New}[r.Header(name+"-Algorithm")]
	if h == nil || !sameBase64(sent, mac(h, secret, string(r.Body)+"."+nonce+"."+at)) {
		return errSignature
	}
	return recent(at, r.Now)
}
