package sim

import "github.com/penstock/penstock/relay"

// Refusal is an error whose text is meant for the account's holder.
type Refusal struct{ err *relay.Error }

// Refuse makes a Refusal of a kind.
func Refuse(kind relay.Kind, text string) error {
	return &Refusal{&relay.Error{Kind: kind, Message: text}}
}

// Error returns the text.
func (r *Refusal) Error() string { return r.err.Message }

// Unwrap returns the error with the kind.
func (r *Refusal) Unwrap() error { return r.err }

// NoSIM is the refusal of a SIM that the account does not have.
func NoSIM() error { return Refuse(relay.KindNotFound, "SIM not found.") }

// NoPool is the refusal of a pool that the account does not have.
func NoPool() error { return Refuse(relay.KindInvalid, "Invalid pool.") }

// NoSubscriber is the refusal of a subscriber that the account does not have.
func NoSubscriber() error { return Refuse(relay.KindInvalid, "Invalid subscriber.") }

// NoRecipient is the refusal of a recipient that the SIM or pool does not have.
func NoRecipient() error { return Refuse(relay.KindInvalid, "Invalid recipient.") }

// BadICCID is the refusal of a request that names a SIM it must not.
func BadICCID(iccid string) error {
	const most = 40
	if len(iccid) > most {
		iccid = iccid[:most] + "…"
	}
	return Refuse(relay.KindInvalid, "Invalid ICCID: "+iccid+".")
}

// Missing turns a record that is not there into a refusal.
func Missing(err, refusal error) error {
	if relay.KindOf(err) == relay.KindNotFound {
		return refusal
	}
	return err
}

// NotFree is the refusal of a SIM that is in another pool.
func NotFree(iccid ICCID) error {
	return Refuse(relay.KindInvalid, "ICCID "+string(iccid)+" is in another pool: detach it first.")
}
