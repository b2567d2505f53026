package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/config/strict"
)

const (
	sealed = "sha256:" // and 64 hex digits
	masked = "masked:" // and maskDigits of them, or none for codes that could be guessed
	// maskDigits is how many digits of a hash a mask shows.
	maskDigits = 12
	// stretched begins a SOAP password that has been hashed slowly, with a salt,
	// by who applies the inventory: version, costs, salt and key follow.
	stretched = "$argon2id$"
)

// Hash returns the lower-case hex SHA-256 of the token, sealed or not.
func (t Token) Hash() string { return hash(t.Token) }

// Hash returns the lower-case hex SHA-256 of the password, sealed or not; of
// one that is stretched, that of what it was stretched to.
func (s SOAP) Hash() string { return hash(s.Password) }

func hash(secret string) string {
	if isSealed(secret) {
		return secret[len(sealed):]
	}
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func isSealed(s string) bool {
	digits, ok := strings.CutPrefix(s, sealed)
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// isStretched reports a password that has been hashed slowly.
func isStretched(s string) bool {
	rest, ok := strings.CutPrefix(s, stretched)
	return ok && strings.Count(rest, "$") == 3
}

// Seal returns the document with tokens and SOAP passwords as hashes, for
// keeping. A password that is stretched stays so. What must sign or be shown again (secrets, SIM codes) stays.
func Seal(d Document) Document {
	return replaceSecrets(d, secretChange{hashed: func(s string) string {
		if isStretched(s) {
			return s
		}
		return sealed + hash(s)
	}})
}

// Mask returns the document with every secret hidden, for showing. SIM codes
// have too few digits for a hash to hide them: their mask says nothing.
func Mask(d Document) Document {
	mask := func(s string) string { return masked + hash(s)[:maskDigits] }
	return replaceSecrets(d, secretChange{hashed: mask, kept: mask, code: func(string) string { return masked }})
}

// secretChange says what becomes of each sort of secret; nil: nothing.
type secretChange struct{ hashed, kept, code func(string) string }

func replaceSecrets(d Document, c secretChange) Document {
	d = clone(d)
	for i := range d.Accounts {
		a := &d.Accounts[i]
		for j := range a.Tokens {
			change(c.hashed, &a.Tokens[j].Token)
			change(c.kept, &a.Tokens[j].Secret)
		}
		if a.SOAP != nil {
			change(c.hashed, &a.SOAP.Password)
		}
		for j := range a.WebhookSecrets {
			change(c.kept, &a.WebhookSecrets[j])
		}
		for j := range a.SIMs {
			for _, code := range a.SIMs[j].codes() {
				change(c.code, code.value)
			}
		}
	}
	return d
}

func change(f func(string) string, s *string) {
	if f != nil && *s != "" && !strings.HasPrefix(*s, masked) {
		*s = f(*s)
	}
}

type code struct {
	name  string
	value *string
}

func (s *SIM) codes() []code {
	return []code{{"pin", &s.PIN}, {"pin2", &s.PIN2}, {"puk", &s.PUK}, {"puk2", &s.PUK2}}
}

// clone copies a document so that nothing is shared. A document holds only what
// JSON can hold, so neither step can fail.
func clone(d Document) Document {
	var fresh Document
	data, _ := json.Marshal(d)
	_ = json.Unmarshal(data, &fresh)
	return fresh
}

// unmask puts the known secret back where its mask was handed in.
func (k known) unmask(d *Document, m *strict.Mistakes) {
	for i := range d.Accounts {
		a := &d.Accounts[i]
		old := k.account(*a)
		at := fmt.Sprintf("accounts[%d].", i)
		for j := range a.Tokens {
			unmaskToken(&a.Tokens[j], old, fmt.Sprintf("%stokens[%d].", at, j), m)
		}
		if a.SOAP != nil {
			var was []string
			if old.SOAP != nil {
				was = []string{old.SOAP.Password}
			}
			unmaskOne(&a.SOAP.Password, was, at+"soap.password", m)
		}
		for j := range a.WebhookSecrets {
			unmaskOne(&a.WebhookSecrets[j], old.WebhookSecrets, fmt.Sprintf("%swebhook_secret[%d]", at, j), m)
		}
		was := make(map[string]SIM, len(old.SIMs))
		for _, one := range old.SIMs {
			was[one.ICCID] = one
		}
		for j := range a.SIMs {
			unmaskSIM(&a.SIMs[j], was[a.SIMs[j].ICCID], fmt.Sprintf("%ssims[%d].", at, j), m)
		}
	}
}

func unmaskToken(t *Token, old Account, at string, m *strict.Mistakes) {
	var was []string
	for _, o := range old.Tokens {
		was = append(was, sealed+o.Hash())
	}
	unmaskOne(&t.Token, was, at+"token", m)
	was = nil
	for _, o := range old.Tokens {
		if o.Hash() == t.Hash() {
			was = []string{o.Secret}
		}
	}
	unmaskOne(&t.Secret, was, at+"secret", m)
}

func unmaskSIM(s *SIM, was SIM, at string, m *strict.Mistakes) {
	if !slices.ContainsFunc(s.codes(), func(c code) bool { return *c.value == masked }) {
		return
	}
	before := was.codes()
	for i, code := range s.codes() {
		switch {
		case *code.value != masked:
		case *before[i].value == "":
			m.Add(at+code.name, "this mask hides no known secret")
		default:
			*code.value = *before[i].value
		}
	}
}

func unmaskOne(s *string, was []string, path string, m *strict.Mistakes) {
	digits, isMask := strings.CutPrefix(*s, masked)
	if !isMask {
		return
	}
	for _, w := range was {
		if w != "" && hash(w)[:maskDigits] == digits {
			*s = w
			return
		}
	}
	m.Add(path, "this mask hides no known secret")
}
