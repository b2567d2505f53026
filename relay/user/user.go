package user

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock/penstock/relay"
)

// Role determines the permissions of a user.
type Role string

// The roles. A viewer reads events, messages, deliveries and devices without their texts and
// secrets; an operator also reads texts, rules and the inventory, and replays; an admin also
// changes accounts, users and inventories; an account user reads the records of one account.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Admin    Role = "admin"
	Account  Role = "account"
)

// Roles lists every role.
func Roles() []Role { return []Role{Viewer, Operator, Admin, Account} }

// SeesTexts reports whether a role may read the texts of messages.
func (r Role) SeesTexts() bool { return r != Viewer }

// SeesFaults reports whether a role may read the errors of back ends, which name hosts and
// addresses of the gateway's network.
func (r Role) SeesFaults() bool { return r == Viewer || r == Operator || r == Admin }

// Provider verifies a user who signs in.
type Provider string

// The providers.
const (
	Password Provider = "password"
	OIDC     Provider = "oidc"
)

// User is a person who may sign in.
type User struct {
	ID string `json:"id"`
	// Name is unique, in lower case.
	Name string `json:"name"`
	Role Role   `json:"role"`
	// Account is the account that a user of the role Account reads; otherwise 0.
	Account  relay.AccountID `json:"account,omitempty"`
	Provider Provider        `json:"provider"`
	// Subject identifies a user of a provider: the issuer, a blank and the subject.
	Subject string `json:"subject,omitempty"`
	// Password is a hash of account.HashPassword; empty for users of a provider.
	Password string `json:"password,omitempty"`
	// Disabled users cannot sign in.
	Disabled  bool      `json:"disabled,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ChangedAt time.Time `json:"changed_at"`
	// SignedInAt is the time of the last sign-in; zero if there was none.
	SignedInAt time.Time `json:"-"`
	// Version counts the changes, from 1 for a new user; a session is valid for one version.
	Version int64 `json:"-"`
}

const (
	maxName     = 100
	minPassword = 12 // characters
	maxPassword = 1024
)

// namePattern excludes blanks, so that no user has the name "admin token", which the audit
// log uses for that actor.
var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._@+-]*$`)

// ParseName returns a user's name in lower case; false if the name is invalid.
func ParseName(text string) (string, bool) {
	name := strings.ToLower(strings.TrimSpace(text))
	return name, len(name) <= maxName && namePattern.MatchString(name)
}

// check adds the problems of the role and account of the user.
func (u *User) check(p relay.Problems) {
	switch {
	case !slices.Contains(Roles(), u.Role):
		p.Add("role", fmt.Sprintf("must be viewer, operator, admin or account, not %q", string(u.Role)))
	case u.Role == Account && u.Account == 0:
		p.Add("account", "The role account needs the account that the user may see.")
	case u.Role != Account && u.Account != 0:
		p.Add("account", "Only a user of the role account has an account.")
	}
}

// checkPassword adds a problem for an invalid password. Blanks at its ends do not count.
func checkPassword(p relay.Problems, field, password string) {
	if n := utf8.RuneCountInString(strings.TrimSpace(password)); n < minPassword || len(password) > maxPassword {
		p.Add(field, fmt.Sprintf("The password must have at least %d characters, blanks at its ends not counted, and at most %d bytes.", minPassword, maxPassword))
	}
}

// Session is the stored session of a user.
type Session struct {
	// Hash is account.HashToken of the session's token.
	Hash      string
	UserID    string
	Version   int64 // of the user
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Identity is a person whom a provider has verified.
type Identity struct {
	Subject string // issuer and subject
	Name    string
	Role    Role
	// Account names the account of the role Account, by its name or id.
	Account string
}

// Attempt identifies a sign-in through a provider. The browser stores the attempt until it
// returns from the provider.
type Attempt struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // of PKCE
}
