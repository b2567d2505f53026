package gateway

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Keys sign and verify requests between gateways. They are derived from the master keys, which are
// not in the database, so that a reader of the database cannot sign requests.
type Keys [][]byte

// NewKeys derives a key from each master key. The first key signs; all keys verify.
func NewKeys(masterKeys []string) (Keys, error) {
	var keys Keys
	for _, masterKey := range masterKeys {
		key, err := hkdf.Key(sha256.New, []byte(masterKey), nil, "penstock requests between gateways", sha256.Size)
		if err != nil {
			return nil, fmt.Errorf("key of requests between gateways: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Request has the fields that the signature of a request covers.
type Request struct {
	Method string
	Target string // path and query
	Node   string // name of the requesting gateway
	// Actor and Role belong to the user of a forwarded request; empty for the gateway's own
	// requests.
	Actor, Role string
	Time        time.Time // in seconds
	Body        []byte
}

// MaxRequestAge is the largest valid difference between the time of a request and the clock of the
// receiving gateway.
const MaxRequestAge = 5 * time.Minute

// Sign returns the signature of a request.
func (k Keys) Sign(r Request) []byte {
	if len(k) == 0 {
		return nil
	}
	return r.sum(k[0])
}

// Verify reports whether signature is the signature of a request by one of the keys.
func (k Keys) Verify(r Request, signature []byte) bool {
	for _, key := range k {
		if hmac.Equal(r.sum(key), signature) {
			return true
		}
	}
	return false
}

func (r Request) sum(key []byte) []byte {
	body := sha256.Sum256(r.Body)
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s\n%x", strings.Join([]string{
		r.Method, r.Target, r.Node, r.Actor, r.Role, strconv.FormatInt(r.Time.Unix(), 10),
	}, "\n"), body)
	return mac.Sum(nil)
}
