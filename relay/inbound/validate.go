package inbound

import (
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/relay"
)

// Limits of an action's parameters.
const (
	maxParameters = 100
	maxURL        = 2048
	maxAddress    = 254 // RFC 5321, 4.5.3.1.3
	maxLabel      = 255
)

// Validate checks an action for a kind of relay: that there is such an action
// and this version performs it, and that its parameters are given and good.
// checkURL says whether the gateway may call a URL, which it gets with sample
// values in the place of the placeholders; nil allows all. The fields of the
// relay.KindInvalid error are action and parameters.
func (a Action) Validate(k Kind, checkURL func(string) error) error {
	info, ok := actionOf(k, a.Name)
	if !ok {
		return relay.Invalid("action", fmt.Sprintf("The action must be one of %s.", names(k)))
	}
	if !info.available {
		return relay.Invalid("action", fmt.Sprintf("The action %s is not available in this version; it cannot be set yet.", a.Name))
	}
	switch {
	case info.takes == nothing:
		return nil
	case len(a.Parameters) == 0:
		return relay.Invalid("parameters", fmt.Sprintf("The parameters field is required when action is %s.", a.Name))
	case len(a.Parameters) > maxParameters:
		return relay.Invalid("parameters", fmt.Sprintf("The parameters may not have more than %d items.", maxParameters))
	}
	for i, p := range a.Parameters {
		if err := checkParameter(info.takes, k, p, checkURL); err != nil {
			return relay.Invalid("parameters", fmt.Sprintf("parameters.%d: %v", i, err))
		}
	}
	return nil
}

func names(k Kind) string {
	var list []string
	for _, a := range actions(k) {
		list = append(list, a.Name)
	}
	return strings.Join(list, ", ")
}

func checkParameter(t takes, k Kind, p string, checkURL func(string) error) error {
	switch t {
	case urls:
		return checkEndpoint(k, p, checkURL)
	case addresses:
		return checkAddress(p)
	case labels:
		return checkLabel(p)
	}
	return nil
}

func checkLabel(s string) error {
	switch {
	case s == "" || !utf8.ValidString(s):
		return errors.New("want a label in UTF-8")
	case len(s) > maxLabel:
		return fmt.Errorf("the label may not be longer than %d bytes", maxLabel)
	}
	return nil
}

func checkEndpoint(k Kind, raw string, checkURL func(string) error) error {
	if len(raw) > maxURL {
		return fmt.Errorf("the URL may not be longer than %d characters", maxURL)
	}
	t, err := CompileURL(k, raw)
	if err != nil || checkURL == nil {
		return err
	}
	return checkURL(t.Sample())
}

// checkAddress takes a bare address: what SMTP carries without extensions, and
// nothing that could end a header line or command.
func checkAddress(s string) error {
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Name != "" || parsed.Address != s || !printableASCII(s) || len(s) > maxAddress {
		return fmt.Errorf("%.80q is not an e-mail address", s)
	}
	return nil
}

func printableASCII(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}
