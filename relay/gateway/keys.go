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

// Keys sign and verify the requests that gateways make to each other. They are derived from
// the master keys, which all gateways have and their database has not, so that no one who
// reads the database can make such a request.
type Keys [][]byte

// NewKeys derives a key from each master key. The first one signs, all verify.
func NewKeys(masterKeys []string) (Keys, error) {
	var keys Keys
	for _, text := range masterKeys {
		key, err := hkdf.Key(sha256.New, []byte(text), nil, "penstock requests between gateways", sha256.Size)
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
	Node   string // of the gateway that makes it
	// Actor and Role are of the user whose request the gateway passes on; empty if it makes
	// the request by itself.
	Actor, Role string
	Time        time.Time // in seconds
	Body        []byte
}

// MaxRequestAge is the largest difference between the time of a request and the clock of the
// gateway that receives it.
const MaxRequestAge = 5 * time.Minute

// Sign returns the signature of a request.
func (k Keys) Sign(r Request) []byte {
	if len(k) == 0 {
		return nil
	}
	return r.sum(k[0])
}

// Verify reports whether a signature is that of a request by one of the keys.
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
