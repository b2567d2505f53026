package carrier

import (
	"crypto/sha256"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/inbound"
)

// parsePlivo parses the parameters of Plivo's message_url ("Handling incoming SMS/MMS"):
// a form, a query or JSON. Plivo has joined the parts.
func parsePlivo(f *fieldReader) ([]inbound.Message, error) {
	urls := mediaURLs(f.object, "Media", "MediaUrl")
	if status := f.text("Status"); status != "" && !f.has("Text") && !f.has("Body") && len(urls) == 0 {
		return nil, receiptNotice(f.text("MessageUUID"), status)
	}
	m := inbound.Message{CarrierID: f.required("MessageUUID", maxName)}
	f.setAddresses(&m, "From", "To")
	text := "Text"
	if !f.has(text) && f.has("Body") {
		text = "Body" // of an MMS
	}
	f.setText(&m, text, urls)
	return f.message(m)
}

// verifyPlivo checks X-Plivo-Signature-V3, or V2 if V3 is missing: the base64 of an
// HMAC-SHA256 with the auth token over the URL and a nonce, and in V3 the parameters. The
// headers named Ma have the signature of a subaccount's main account. V2 does not cover the
// parameters, so a nonce is accepted with one body only.
func (n *nonces) verifyPlivo(r *SignedRequest, secret string) error {
	for _, account := range []string{"", "Ma-"} {
		if err := verifyPlivoV3(r, account, secret); err != httpd.ErrUnsigned { //nolint:errorlint // verifyPlivoV3 does not wrap it
			return err
		}
	}
	for _, account := range []string{"", "Ma-"} {
		signature, nonce := r.Header("X-Plivo-Signature-"+account+"V2"), r.Header("X-Plivo-Signature-V2-Nonce")
		switch {
		case signature == "" || nonce == "":
			continue
		case !anyEqualBase64(signature, mac(sha256.New, secret, r.urlWithoutQuery()+nonce)):
			return errSignature
		case !n.accept(nonce, r):
			return errStale
		}
		return nil
	}
	return httpd.ErrUnsigned
}

func verifyPlivoV3(r *SignedRequest, account, secret string) error {
	signature, nonce := r.Header("X-Plivo-Signature-"+account+"V3"), r.Header("X-Plivo-Signature-V3-Nonce")
	if signature == "" || nonce == "" {
		return httpd.ErrUnsigned
	}
	fields, err := r.form()
	if err != nil {
		return err
	}
	if fields == nil && len(r.Body) > 0 {
		return errUnread // the signature would not cover the body
	}
	// The signed text is the URL with its parameters, followed by those of the form. They are
	// sorted, with decoded names and values.
	text, query := r.urlWithoutQuery(), sortedPairs(r.query(), "=", "&")
	if query != "" || len(fields) > 0 {
		text += "?" + query
	}
	if query != "" && len(fields) > 0 {
		text += "."
	}
	if !anyEqualBase64(signature, mac(sha256.New, secret, text+sortedPairs(fields, "", "")+"."+nonce)) {
		return errSignature
	}
	return nil
}

func sortedPairs(v url.Values, equals, separator string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		for _, text := range slices.Sorted(slices.Values(v[name])) {
			pairs = append(pairs, name+equals+text)
		}
	}
	return strings.Join(pairs, separator)
}

// maxNonces is the maximum number of stored nonces. A new nonce replaces the oldest one. A repeated
// post with an older nonce is recognised by its message id.
const maxNonces = 100_000

// nonces stores a digest of the request of each nonce.
type nonces struct {
	mu        sync.Mutex
	used      map[string][sha256.Size]byte
	ring      []string
	nextIndex int
}

func newNonces() *nonces { return &nonces{used: make(map[string][sha256.Size]byte)} }

// accept reports whether a nonce is new, or was used for the same request, which a carrier repeats
// if it receives no answer.
func (n *nonces) accept(nonce string, r *SignedRequest) bool {
	sum := sha256.Sum256(append([]byte(r.URL+"\x00"), r.Body...))
	n.mu.Lock()
	defer n.mu.Unlock()
	if known, found := n.used[nonce]; found {
		return known == sum
	}
	nonce = strings.Clone(nonce) // fiber reuses the memory of the request
	if len(n.ring) < maxNonces {
		n.ring = append(n.ring, nonce)
	} else {
		delete(n.used, n.ring[n.nextIndex])
		n.ring[n.nextIndex] = nonce
		n.nextIndex = (n.nextIndex + 1) % maxNonces
	}
	n.used[nonce] = sum
	return true
}
