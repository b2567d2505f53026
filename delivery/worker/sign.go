package worker

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// sign returns the headers of Standard Webhooks: one v1 signature, base64 of
// HMAC-SHA256 over "id.timestamp.body", for each key.
func sign(keys [][]byte, id string, at time.Time, body []byte) map[string]string {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return map[string]string{
		"webhook-id":        id,
		"webhook-timestamp": timestamp,
		"webhook-signature": strings.Join(signatures, " "),
	}
}

// parseSecret reads "whsec_" and base64. The prefix may be missing, as
// verifying libraries allow.
func parseSecret(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) == 0 {
		return nil, errors.New("webhook secret: not whsec_ and base64")
	}
	return key, nil
}
