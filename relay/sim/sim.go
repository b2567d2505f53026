package sim

import (
	"cmp"

	"github.com/penstock/penstock/relay"
)

// ICCID identifies a SIM: 18 to 22 digits (ITU-T E.118, some with padding).
type ICCID string

// ParseICCID checks an ICCID.
func ParseICCID(s string) (ICCID, error) {
	if len(s) < 18 || len(s) > 22 || !relay.Digits(s) {
		return "", relay.Errorf(relay.KindInvalid, "ICCID %.30q must have 18 to 22 digits", s)
	}
	return ICCID(s), nil
}

// String returns the digits.
func (i ICCID) String() string { return string(i) }

// State is the current or the requested state of a SIM.
type State string

// The states. Terminated is final.
const (
	Pending    State = "pending"
	Active     State = "active"
	Suspended  State = "suspended"
	Terminated State = "terminated"
)

// States returns all states, in their order.
func States() []State { return []State{Pending, Active, Suspended, Terminated} }

// The services that a SIM may have.
const (
	Service4G = "service_4g"
	Service5G = "service_5g"
)

// Codes unlock a SIM. Only the account's holder may see them.
type Codes struct{ PIN, PIN2, PUK, PUK2 string }

// String hides the codes, because printed text may be logged.
func (Codes) String() string { return "(codes)" }

// GoString hides the codes as well.
func (c Codes) GoString() string { return c.String() }

// SIM is one SIM of an account.
type SIM struct {
	ICCID                ICCID
	IMSI, MSISDN         string // digits; unique among SIMs; empty while unknown
	Service4G, Service5G bool
	Codes                Codes
	Undecryptable        bool // a code cannot be decrypted and is empty
	State                State
	RequestedState       State  // the state that the job in progress will set; State without a job
	Job                  string // id of the job in progress; empty means none
	Subscriber           string // id; empty means none
	Pool                 string // id; empty means none
	Limit                Limit
	Recipients           []Recipient // at most MaxRecipients
}

// InService reports whether a SIM is active and no job is about to change that.
func (sim *SIM) InService() bool { return sim.State == Active && sim.RequestedState == Active }

// LimitAction is the effect of a reached monthly limit.
type LimitAction string

// The actions. Notify notifies the recipients and the callback URL; Block also requests the
// suspension of the SIMs.
const (
	NoAction LimitAction = "none"
	Notify   LimitAction = "notify"
	Block    LimitAction = "block"
)

// LimitActions returns all actions.
func LimitActions() []LimitAction { return []LimitAction{NoAction, Notify, Block} }

// Limit bounds the usage of a SIM, or of the SIMs of a pool together, in a calendar month,
// UTC.
type Limit struct {
	Monthly int64       // bytes; 0 means no limit
	Warning int64       // bytes after which a warning is sent; 0 means none
	Action  LimitAction `json:"Cap"` // the key in stored pools; not empty in stored SIMs
}

// HasAction reports whether reaching the limit has an effect.
func (l Limit) HasAction() bool { return l.Monthly > 0 && (l.Action == Notify || l.Action == Block) }

// Blocks reports whether SIMs that reach the limit are suspended.
func (l Limit) Blocks() bool { return l.HasAction() && l.Action == Block }

// IsSet reports whether usage is compared with the limit.
func (l Limit) IsSet() bool { return l.Warning > 0 || l.HasAction() }

// Recipient is notified when a limit is near or reached.
type Recipient struct {
	ID     string `json:"id"`
	Email  string `json:"email"`
	Number string `json:"number,omitempty"` // digits; empty means none
}

// MaxRecipients is the largest number of recipients of a SIM or a pool.
const MaxRecipients = 100

// Pool is a group of SIMs with a limit of their own.
type Pool struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Limit      Limit       `json:"limit"`
	Recipients []Recipient `json:"recipients,omitempty"` // with different e-mail addresses
}

// ApplyDeclaration returns the stored SIM after an inventory has declared it. Declared numbers and codes
// replace the stored ones unless they are empty. The state, the services, the subscriber
// and the job are replaced only if reset is set. For a new SIM, stored is the zero value.
func ApplyDeclaration(stored, declared SIM, reset bool) SIM {
	if stored.ICCID == "" {
		declared.RequestedState, declared.Limit.Action = declared.State, NoAction
		return declared
	}
	stored.IMSI, stored.MSISDN = cmp.Or(declared.IMSI, stored.IMSI), cmp.Or(declared.MSISDN, stored.MSISDN)
	stored.Codes = Codes{
		PIN: cmp.Or(declared.Codes.PIN, stored.Codes.PIN), PIN2: cmp.Or(declared.Codes.PIN2, stored.Codes.PIN2),
		PUK: cmp.Or(declared.Codes.PUK, stored.Codes.PUK), PUK2: cmp.Or(declared.Codes.PUK2, stored.Codes.PUK2),
	}
	if reset {
		stored.State, stored.RequestedState, stored.Job = declared.State, declared.State, ""
		stored.Service4G, stored.Service5G, stored.Subscriber = declared.Service4G, declared.Service5G, ""
	}
	return stored
}

// HasService reports whether the SIM has a service.
func (sim *SIM) HasService(service string) bool {
	return service == Service4G && sim.Service4G || service == Service5G && sim.Service5G
}

// SetService adds a service to the SIM or removes it.
func (sim *SIM) SetService(service string, enabled bool) {
	switch service {
	case Service4G:
		sim.Service4G = enabled
	case Service5G:
		sim.Service5G = enabled
	}
}

// Refusal is an error whose text is for the account's holder.
type Refusal struct{ err *relay.Error }

// Refuse returns a Refusal of a kind.
func Refuse(kind relay.Kind, text string) error {
	return &Refusal{&relay.Error{Kind: kind, Message: text}}
}

// Error returns the text.
func (r *Refusal) Error() string { return r.err.Message }

// Unwrap returns the error with the kind.
func (r *Refusal) Unwrap() error { return r.err }

// NotFound returns the refusal of a SIM that the account does not have.
func NotFound() error { return Refuse(relay.KindNotFound, "SIM not found.") }

// PoolNotFound returns the refusal of a pool that the account does not have.
func PoolNotFound() error { return Refuse(relay.KindInvalid, "Invalid pool.") }

// SubscriberNotFound returns the refusal of a subscriber that the account does not have.
func SubscriberNotFound() error { return Refuse(relay.KindInvalid, "Invalid subscriber.") }

// RecipientNotFound returns the refusal of a recipient that the SIM or pool does not have.
func RecipientNotFound() error { return Refuse(relay.KindInvalid, "Invalid recipient.") }

// InvalidICCID returns the refusal of a request with an invalid ICCID, or with the ICCID of a SIM that
// the request may not change.
func InvalidICCID(iccid string) error {
	const maxLength = 40
	if len(iccid) > maxLength {
		iccid = iccid[:maxLength] + "…"
	}
	return Refuse(relay.KindInvalid, "Invalid ICCID: "+iccid+".")
}

// ReplaceNotFound returns the refusal if err is relay.KindNotFound, else err.
func ReplaceNotFound(err, refusal error) error {
	if relay.KindOf(err) == relay.KindNotFound {
		return refusal
	}
	return err
}

// InOtherPool returns the refusal of a SIM that is in another pool.
func InOtherPool(iccid ICCID) error {
	return Refuse(relay.KindInvalid, "ICCID "+string(iccid)+" is in another pool: detach it first.")
}
