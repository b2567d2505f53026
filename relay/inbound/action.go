package inbound

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/relay"
)

// Kind is the kind of a relay. Each kind has its own actions and placeholders.
type Kind string

// The kinds of relay, as the paths and the inventory name them.
const (
	Geographic    Kind = "geo"
	VirtualNumber Kind = "vmn"
)

func (k Kind) words() string {
	if k == VirtualNumber {
		return "virtual number"
	}
	return "geographic"
}

// The names of the actions.
const (
	BlackHole    = "black_hole"
	Inactive     = "inactive"
	HTTPGet      = "http_get"
	HTTPPost     = "http_post"
	Email        = "email"
	MVNO         = "mvno"
	DialoguePost = "dialogue_post"
	DialogueGet  = "dialogue_get"
	MSOutlook    = "ms_outlook"
	DesktopSMS   = "desktopsms"
	InboundGW    = "inbound_gw"
)

// Action is the action of a relay on its messages.
type Action struct {
	Name string `json:"name"`
	// Parameters are URLs, e-mail addresses or labels; each gets every message.
	Parameters []string `json:"parameters,omitempty"`
}

// ParameterKind is the kind of an action's parameters.
type ParameterKind string

const (
	noParameters ParameterKind = ""
	urls         ParameterKind = "urls"
	addresses    ParameterKind = "addresses"
	labels       ParameterKind = "labels"
)

// ActionInfo describes an action to the account holder.
type ActionInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// ParameterKind is the kind of the action's parameters; empty if it has none.
	ParameterKind ParameterKind `json:"-"`

	unlisted bool // requires a permission with the name of the action
}

// Actions lists the actions of a kind of relay in the specification's order.
func Actions(k Kind) []ActionInfo { return ActionsOf(k, func(string) bool { return false }) }

// ActionsOf lists the actions that an account may set. isPermitted reports whether the account
// has a permission.
func ActionsOf(k Kind, isPermitted func(permission string) bool) []ActionInfo {
	return slices.DeleteFunc(actions(k), func(a ActionInfo) bool { return a.unlisted && !isPermitted(a.Name) })
}

// Describe returns the description of an action; empty if the action is unknown.
func Describe(k Kind, name string) string {
	a, _ := actionOf(k, name)
	return a.Description
}

// NeedsPermission reports whether an account may set an action only with the permission of the
// same name.
func NeedsPermission(k Kind, name string) bool {
	a, ok := actionOf(k, name)
	return ok && a.unlisted
}

func actionOf(k Kind, name string) (ActionInfo, bool) {
	infos := actions(k)
	i := slices.IndexFunc(infos, func(a ActionInfo) bool { return a.Name == name })
	if i < 0 {
		return ActionInfo{}, false
	}
	return infos[i], true
}

func actions(k Kind) []ActionInfo {
	switch k {
	case Geographic:
		return []ActionInfo{
			{Name: BlackHole, Description: "Discard messages"},
			{Name: HTTPPost, Description: "Forward messages to URLs with HTTP POST", ParameterKind: urls},
			{Name: HTTPGet, Description: "Forward messages to URLs with HTTP GET", ParameterKind: urls},
			{Name: Email, Description: "Forward messages to e-mail addresses", ParameterKind: addresses},
			{Name: MVNO, Description: "Deliver messages to the SIM; they cannot be forwarded to any external destination", unlisted: true},
		}
	case VirtualNumber:
		return []ActionInfo{
			{Name: Inactive, Description: "Discard messages"},
			{Name: HTTPGet, Description: "Forward messages to URLs with HTTP GET", ParameterKind: urls},
			{Name: HTTPPost, Description: "Forward messages to URLs with HTTP POST", ParameterKind: urls},
			{Name: Email, Description: "Forward messages to e-mail addresses", ParameterKind: addresses},
			{Name: DialoguePost, Description: "Forward messages with HTTP POST as X-E3 form fields", ParameterKind: urls},
			{Name: DialogueGet, Description: "Forward messages with HTTP GET as X-E3 query parameters", ParameterKind: urls},
			{Name: MSOutlook, Description: "Mail messages in the form of Outlook's mobile service", ParameterKind: addresses},
			{Name: DesktopSMS, Description: "Keep messages in an inbox until they are acknowledged", ParameterKind: labels},
			{Name: InboundGW, Description: "Forward messages as JSON to another gateway", ParameterKind: urls},
		}
	}
	return nil
}

// Limits of an action's parameters.
const (
	maxParameters = 100
	maxURL        = 2048
	maxLabel      = 255
)

// Validate checks that a kind of relay has the action and that the parameters are valid.
// checkURL is called with each URL, with sample values for the placeholders, and returns an
// error if the gateway may not call it; nil allows all. The fields of the relay.KindInvalid
// error are action and parameters.
func (a Action) Validate(k Kind, checkURL func(string) error) error {
	return a.validate(k, func(t *Template) error {
		if err := t.url.Check(); err != nil || checkURL == nil {
			return err
		}
		return checkURL(t.Sample())
	})
}

// validate is Validate with a check of each compiled URL.
func (a Action) validate(k Kind, check func(*Template) error) error {
	info, ok := actionOf(k, a.Name)
	switch {
	case !ok:
		var names []string
		for _, a := range actions(k) {
			names = append(names, a.Name)
		}
		return relay.Invalid("action", fmt.Sprintf("The action must be one of %s.", strings.Join(names, ", ")))
	case info.ParameterKind == noParameters:
		return nil
	case len(a.Parameters) == 0:
		return relay.Invalid("parameters", fmt.Sprintf("The parameters field is required when action is %s.", a.Name))
	case len(a.Parameters) > maxParameters:
		return relay.Invalid("parameters", fmt.Sprintf("The parameters may not have more than %d items.", maxParameters))
	}
	for i, p := range a.Parameters {
		var err error
		switch {
		case info.ParameterKind == urls:
			err = checkEndpoint(k, p, check)
		case info.ParameterKind == addresses:
			err = relay.CheckAddress(p)
		case p == "" || !utf8.ValidString(p):
			err = errors.New("the label must be UTF-8 and not empty")
		case len(p) > maxLabel:
			err = fmt.Errorf("the label may not be longer than %d bytes", maxLabel)
		}
		if err != nil {
			return relay.Invalid("parameters", fmt.Sprintf("parameters.%d: %v", i, err))
		}
	}
	return nil
}

// CheckEndpoint returns an error if raw is not a valid URL for a kind of relay. It does not
// check whether the gateway may call the URL.
func CheckEndpoint(kind, raw string) error {
	return checkEndpoint(Kind(kind), raw, func(t *Template) error { return t.url.Check() })
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
