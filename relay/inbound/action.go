package inbound

// Kind is the kind of a relay; each kind has its own actions and
// placeholders.
type Kind string

// The kinds of relay, as the paths and the inventory name them.
const (
	Geographic    Kind = "geo"
	VirtualNumber Kind = "vmn"
)

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

// parameterKind is the kind of an action's parameters.
type parameterKind string

const (
	noParameters parameterKind = ""
	urls         parameterKind = "urls"
	addresses    parameterKind = "addresses"
	labels       parameterKind = "labels"
)

// ActionInfo describes an action to the account holder.
type ActionInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`

	takes    parameterKind
	unlisted bool // may be set only with the permission of its name
}

// Takes returns the kind of the action's parameters: urls, addresses or labels, empty if it
// takes none.
func (a ActionInfo) Takes() string { return string(a.takes) }

// Actions lists the actions of a kind of relay in the specification's order.
func Actions(k Kind) []ActionInfo { return ActionsOf(k, func(string) bool { return false }) }

// ActionsOf lists the actions that an account may set; isPermitted reports whether it has a
// permission.
func ActionsOf(k Kind, isPermitted func(permission string) bool) []ActionInfo {
	var infos []ActionInfo
	for _, a := range actions(k) {
		if !a.unlisted || isPermitted(a.Name) {
			infos = append(infos, a)
		}
	}
	return infos
}

// Describe returns the description of an action, empty for an unknown one.
func Describe(k Kind, name string) string {
	a, _ := actionOf(k, name)
	return a.Description
}

// NeedsPermission reports whether an account needs the permission of the
// action's name to set it.
func NeedsPermission(k Kind, name string) bool {
	a, ok := actionOf(k, name)
	return ok && a.unlisted
}

func actionOf(k Kind, name string) (ActionInfo, bool) {
	for _, a := range actions(k) {
		if a.Name == name {
			return a, true
		}
	}
	return ActionInfo{}, false
}

func actions(k Kind) []ActionInfo {
	switch k {
	case Geographic:
		return []ActionInfo{
			{Name: BlackHole, Description: "Discard messages"},
			{Name: HTTPPost, Description: "Forward messages to URLs with HTTP POST", takes: urls},
			{Name: HTTPGet, Description: "Forward messages to URLs with HTTP GET", takes: urls},
			{Name: Email, Description: "Forward messages to e-mail addresses", takes: addresses},
			{Name: MVNO, Description: "Deliver messages to the SIM; they cannot be forwarded to any external destination", unlisted: true},
		}
	case VirtualNumber:
		return []ActionInfo{
			{Name: Inactive, Description: "Discard messages"},
			{Name: HTTPGet, Description: "Forward messages to URLs with HTTP GET", takes: urls},
			{Name: HTTPPost, Description: "Forward messages to URLs with HTTP POST", takes: urls},
			{Name: Email, Description: "Forward messages to e-mail addresses", takes: addresses},
			{Name: DialoguePost, Description: "Forward messages with HTTP POST as X-E3 form fields", takes: urls},
			{Name: DialogueGet, Description: "Forward messages with HTTP GET as X-E3 query parameters", takes: urls},
			{Name: MSOutlook, Description: "Mail messages in the form of Outlook's mobile service", takes: addresses},
			{Name: DesktopSMS, Description: "Keep messages in an inbox until they are acknowledged", takes: labels},
			{Name: InboundGW, Description: "Forward messages as JSON to another gateway", takes: urls},
		}
	}
	return nil
}
