package inbound

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/condition"
)

// Limits of an action's parameters.
const (
	maxParameters = 100
	maxURL        = 2048
	maxLabel      = 255
)

// Validate checks an action for a kind of relay: that there is such an action
// and that its parameters are given and good.
// checkURL checks whether the gateway may call a URL, which it gets with sample
// values in the place of the placeholders; nil allows all. The fields of the
// relay.KindInvalid error are action and parameters.
func (a Action) Validate(k Kind, checkURL func(string) error) error {
	return a.validate(k, func(t *Template) error {
		if err := t.url.Check(); err != nil || checkURL == nil {
			return err
		}
		return checkURL(t.Sample())
	})
}

// performable checks a stored action. It accepts the URLs of earlier versions, which
// did not refuse unknown placeholders in a query.
func (a Action) performable(k Kind) error {
	return a.validate(k, func(*Template) error { return nil })
}

// validate checks an action, and the URLs that can be read with check.
func (a Action) validate(k Kind, check func(*Template) error) error {
	info, ok := actionOf(k, a.Name)
	if !ok {
		return relay.Invalid("action", fmt.Sprintf("The action must be one of %s.", names(k)))
	}
	switch {
	case info.takes == noParameters:
		return nil
	case len(a.Parameters) == 0:
		return relay.Invalid("parameters", fmt.Sprintf("The parameters field is required when action is %s.", a.Name))
	case len(a.Parameters) > maxParameters:
		return relay.Invalid("parameters", fmt.Sprintf("The parameters may not have more than %d items.", maxParameters))
	}
	for i, p := range a.Parameters {
		if err := checkParameter(info.takes, k, p, check); err != nil {
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

func checkParameter(t parameterKind, k Kind, p string, check func(*Template) error) error {
	switch t {
	case urls:
		return checkEndpoint(k, p, check)
	case addresses:
		return relay.CheckAddress(p)
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

// CheckEndpoint returns an error if a relay of a kind does not accept raw as a URL. It
// does not check the address.
func CheckEndpoint(kind, raw string) error {
	return checkEndpoint(Kind(kind), raw, func(t *Template) error { return t.url.Check() })
}

// CheckFilter refuses a filter that does not compile or costs too much; the
// empty one is none.
func CheckFilter(source string) error {
	if source == "" {
		return nil
	}
	_, err := condition.CompileFilter(source)
	return err
}

// validateFilter is CheckFilter with the field named.
func validateFilter(source string) error {
	if err := CheckFilter(source); err != nil {
		return relay.Invalid("filter", fmt.Sprintf("The filter is not valid: %v.", err))
	}
	return nil
}

func checkEndpoint(k Kind, raw string, check func(*Template) error) error {
	if len(raw) > maxURL {
		return fmt.Errorf("the URL may not be longer than %d characters", maxURL)
	}
	t, err := CompileURL(k, raw)
	if err != nil {
		return err
	}
	return check(t)
}
