package netserver

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders/jwt"
)

// The errors of a signed post that is refused. Their texts may be returned to the sender,
// because they contain neither the secret nor the expected signature.
var (
	ErrUnsigned  = errors.New("netserver: the signature is missing")
	ErrSignature = errors.New("netserver: the signature does not match")
	ErrStale     = errors.New("netserver: the signature is too old or too new")
)

// maxSkew is the largest accepted difference between the clocks of a sender and of this
// machine.
const maxSkew = 5 * time.Minute

// hexEqual compares a digest with hex digits of any case in constant time.
func hexEqual(digits string, digest []byte) bool {
	b, err := hex.DecodeString(digits)
	return err == nil && subtle.ConstantTimeCompare(b, digest) == 1
}

// VerifyKPN checks the header Things-Message-Token of KPN Things: the SHA-256,
// in hex, of the unmodified body followed by the secret. The token has no time, so
// an intercepted post can be replayed, and only the frame's DedupID detects that.
func VerifyKPN(token string, body []byte, secret string) error {
	if token == "" {
		return ErrUnsigned
	}
	h := sha256.New()
	h.Write(body)
	h.Write([]byte(secret))
	if secret == "" || !hexEqual(token, h.Sum(nil)) {
		return ErrSignature
	}
	return nil
}

// VerifyThingPark checks the Token in the query of a post from ThingPark: the
// SHA-256, in hex, of some elements of the body, the query without the Token
// in its original order, and the tunnel interface authentication key in
// lower case. rawQuery is the undecoded query, because its order matters and a plus sign in Time
// is not a blank.
//
// The token's Time may differ from now by five minutes. The error is ErrUnsigned,
// ErrSignature, ErrStale, or a *decoders.Error about the body.
func VerifyThingPark(rawQuery string, body []byte, key string, now time.Time) error {
	// 1. Split the query into the signed pairs, the token and the time.
	var token, timeText string
	var pairs []string
	for pair := range strings.SplitSeq(rawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(value) // QueryUnescape would replace a plus sign
		if err != nil {
			decoded = value
		}
		switch name {
		case "Token":
			token = decoded
			continue
		case "Time":
			timeText = decoded
		case "LrnDevEui", "LrnFPort", "LrnInfos", "AS_ID":
		default:
			continue // a parameter of the receiver, such as decoder_id
		}
		pairs = append(pairs, name+"="+decoded)
	}
	if token == "" {
		return ErrUnsigned
	}
	// 2. Read the signed elements at the same places as the parser, which must not read an
	// unsigned element instead.
	body, err := thingParkJSON(body)
	if err != nil {
		return err
	}
	d, err := readDocument(body)
	if err != nil {
		return err
	}
	documentName := unwrapThingPark(d)
	text := func(path string) string {
		s, _ := d.Value(path).Text()
		return s
	}
	// 3. Compare the token. In documents other than an uplink and a downlink, only the
	// customer and the device are signed, the device in lower case in some versions.
	customer, devEUI, remaining := text("CustomerID"), text("DevEUI"), strings.Join(pairs, "&")+strings.ToLower(key)
	var isSigned bool
	switch documentName {
	case "DevEUI_uplink", "BS_alarm", "":
		isSigned = hasSum(token, customer+devEUI+text("FPort")+text("FCntUp")+text("payload_hex")+remaining)
	case "DevEUI_downlink_Sent":
		isSigned = hasSum(token, customer+devEUI+text("FPort")+text("FCntDn")+remaining)
	default:
		isSigned = hasSum(token, customer+devEUI+remaining) || hasSum(token, customer+strings.ToLower(devEUI)+remaining)
	}
	if key == "" || !isSigned {
		return ErrSignature
	}
	signedAt, err := time.Parse(time.RFC3339Nano, timeText)
	if err != nil {
		return ErrStale
	}
	if signedAt.Sub(now).Abs() > maxSkew {
		return fmt.Errorf("%w: it was signed at %s", ErrStale, signedAt.UTC().Format(time.RFC3339))
	}
	return nil
}

func hasSum(token, text string) bool {
	sum := sha256.Sum256([]byte(text))
	return hexEqual(token, sum[:])
}

// VerifyDisruptive checks the header X-Dt-Signature of Disruptive
// Technologies: a JSON Web Token signed with HMAC SHA-256, which has a checksum of the
// unmodified body. Other algorithms are refused. The error wraps ErrUnsigned, ErrSignature or
// ErrStale.
func VerifyDisruptive(token string, body []byte, secret string, now time.Time) error {
	if token == "" {
		return ErrUnsigned
	}
	var claims struct {
		Checksum       string  `json:"checksum"`        // SHA-1, in current tokens
		ChecksumSHA256 string  `json:"checksum_sha256"` // the name in newer documentation
		Expires        float64 `json:"exp"`             // seconds since 1970
		Issued         float64 `json:"iat"`
	}
	if err := jwt.Verify(token, secret, &claims); err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	sha1Sum, sha256Sum := sha1.Sum(body), sha256.Sum256(body)
	if claims.Checksum != "" && !hexEqual(claims.Checksum, sha1Sum[:]) || claims.Checksum == "" && !hexEqual(claims.ChecksumSHA256, sha256Sum[:]) {
		return fmt.Errorf("%w: the checksum is not the body's", ErrSignature)
	}
	// Allow for different clocks. A token without an expiry is refused as expired.
	seconds, skew := float64(now.UnixMilli())/1000, maxSkew.Seconds()
	switch {
	case claims.Expires == 0 || seconds > claims.Expires+skew:
		return fmt.Errorf("%w: the token has expired", ErrStale)
	case claims.Issued > seconds+skew:
		return fmt.Errorf("%w: the token was issued in the future", ErrStale)
	}
	return nil
}
