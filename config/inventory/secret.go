package inventory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/config/strict"
)

const (
	sealed = "sha256:" // 64 hex digits follow
	masked = "masked:" // maskDigits of the hash follow, or none for the codes of SIMs
	// maskDigits is the number of digits of a hash that a mask shows.
	maskDigits = 12
	// argon2Prefix begins a SOAP password that relay/inventory has hashed with Argon2id. Version,
	// costs, salt and key follow.
	argon2Prefix = "$argon2id$"
)

// Hash returns the lower-case hex SHA-256 of the token, sealed or not.
func (t Token) Hash() string { return hash(t.Token) }

// Hash returns the lower-case hex SHA-256 of the password, sealed or not. A password hashed with
// Argon2id is treated as plain text.
func (s SOAP) Hash() string { return hash(s.Password) }

func hash(secret string) string {
	if isSealed(secret) {
		return secret[len(sealed):]
	}
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// SealedHash returns the sealed form of the token with a hash.
func SealedHash(hash string) string { return sealed + hash }

func isSealed(s string) bool {
	digits, ok := strings.CutPrefix(s, sealed)
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

func isPasswordHash(s string) bool {
	remaining, ok := strings.CutPrefix(s, argon2Prefix)
	return ok && strings.Count(remaining, "$") == 3
}

// Seal returns the document with tokens and SOAP passwords as hashes, for storage. Passwords
// hashed with Argon2id, secrets of signatures and the codes of SIMs are not changed.
func Seal(d Document) Document {
	return replaceSecrets(d, func(s string) string {
		if isPasswordHash(s) {
			return s
		}
		return sealed + hash(s)
	}, nil, nil)
}

// Mask returns the document with a mask for each secret. The mask of a SIM code has no digits
// of a hash, because a code is short enough to be guessed from them.
func Mask(d Document) Document {
	return replaceSecrets(d, mask, mask, func(string) string { return masked })
}

func mask(secret string) string { return masked + hash(secret)[:maskDigits] }

// replaceSecrets replaces credentials, the secrets of signatures, and the codes of SIMs. A nil
// function does not change the secrets of its kind. Masks are not replaced.
func replaceSecrets(d Document, credential, signature, code func(string) string) Document {
	replace := func(f func(string) string, s *string) {
		if f != nil && *s != "" && !strings.HasPrefix(*s, masked) {
			*s = f(*s)
		}
	}
	d = clone(d)
	for i := range d.Accounts {
		a := &d.Accounts[i]
		for j := range a.Tokens {
			replace(credential, &a.Tokens[j].Token)
			replace(signature, &a.Tokens[j].Secret)
		}
		if a.SOAP != nil {
			replace(credential, &a.SOAP.Password)
		}
		for j := range a.WebhookSecrets {
			replace(signature, &a.WebhookSecrets[j])
		}
		for j := range a.SIMs {
			for _, c := range a.SIMs[j].codes() {
				replace(code, c.value)
			}
		}
	}
	return d
}

type code struct {
	name  string
	value *string
}

func (s *SIM) codes() []code {
	return []code{{"pin", &s.PIN}, {"pin2", &s.PIN2}, {"puk", &s.PUK}, {"puk2", &s.PUK2}}
}

// clone returns a deep copy. Encoding and decoding cannot fail: JSON can represent all fields
// of a document.
func clone(d Document) Document {
	var fresh Document
	data, _ := json.Marshal(d)
	_ = json.Unmarshal(data, &fresh)
	return fresh
}

// unmask replaces masks in a document by the secrets of earlier inventories.
func (k known) unmask(d *Document, m *strict.Mistakes) {
	const unknown = "expected a secret, or the mask of the stored one"
	restore := func(s *string, path string, secrets ...string) {
		if !strings.HasPrefix(*s, masked) {
			return
		}
		i := slices.IndexFunc(secrets, func(secret string) bool { return secret != "" && mask(secret) == *s })
		if i < 0 {
			m.Add(path, unknown)
			return
		}
		*s = secrets[i]
	}
	for i := range d.Accounts {
		a, prefix := &d.Accounts[i], fmt.Sprintf("accounts[%d].", i)
		old := k.account(*a)
		tokens, secretByHash := make([]string, len(old.Tokens)), make(map[string]string)
		for j, t := range old.Tokens {
			tokens[j], secretByHash[t.Hash()] = sealed+t.Hash(), t.Secret
		}
		for j := range a.Tokens {
			t, path := &a.Tokens[j], fmt.Sprintf("%stokens[%d].", prefix, j)
			restore(&t.Token, path+"token", tokens...)
			restore(&t.Secret, path+"secret", secretByHash[t.Hash()])
		}
		if a.SOAP != nil {
			restore(&a.SOAP.Password, prefix+"soap.password", cmp.Or(old.SOAP, &SOAP{}).Password)
		}
		for j := range a.WebhookSecrets {
			restore(&a.WebhookSecrets[j], fmt.Sprintf("%swebhook_secret[%d]", prefix, j), old.WebhookSecrets...)
		}
		simByICCID := make(map[string]SIM, len(old.SIMs))
		for _, s := range old.SIMs {
			simByICCID[s.ICCID] = s
		}
		for j := range a.SIMs {
			s := simByICCID[a.SIMs[j].ICCID]
			oldCodes := s.codes()
			for n, c := range a.SIMs[j].codes() {
				switch oldCode := *oldCodes[n].value; {
				case *c.value != masked:
				case oldCode == "":
					m.Add(fmt.Sprintf("%ssims[%d].%s", prefix, j, c.name), unknown)
				default:
					*c.value = oldCode
				}
			}
		}
	}
}
