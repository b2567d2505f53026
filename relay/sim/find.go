package sim

import "github.com/penstock/penstock/relay/account"

// Ref names a SIM of an account.
type Ref struct {
	Account account.ID
	ICCID   ICCID
}

// Search selects SIMs of one or all accounts; empty fields select all.
type Search struct {
	Account account.ID
	// Text is a part of the ICCID, the IMSI or the MSISDN, or the id of the pool or of
	// the subscriber.
	Text  string
	State State
	Pool  string
	After Ref // the last of the page before
	Limit int
}

// Found is a SIM of a search, and its account.
type Found struct {
	Account account.ID
	SIM
}
