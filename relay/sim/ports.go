package sim

import (
	"context"

	"github.com/penstock/penstock/relay"
)

// SIMs stores the SIMs of accounts with the indexes of their lists; a record and its
// indexes change in one transaction.
type SIMs interface {
	// Get loads a SIM; relay.KindNotFound if the account has none with the ICCID.
	Get(ctx context.Context, acct relay.AccountID, iccid ICCID) (SIM, error)

	// GetMany loads those that exist, in one round trip.
	GetMany(ctx context.Context, acct relay.AccountID, iccids []ICCID) (map[ICCID]SIM, error)

	// Change saves a SIM as changed by the function and returns it. If the SIM was
	// changed concurrently, the function is called again with the new value; its error
	// is returned and nothing is saved. It must not change ICCID or Pool.
	// relay.KindNotFound if the account has no such SIM.
	Change(ctx context.Context, acct relay.AccountID, iccid ICCID, change func(*SIM) error) (SIM, error)

	// List returns a page of a list and how many records the whole of it has. A
	// scope that does not exist is empty.
	List(ctx context.Context, acct relay.AccountID, in Scope, q Query) ([]SIM, int, error)

	// Scan returns at most limit ICCIDs of a scope after a cursor, in order. The
	// cursor is the last ICCID read, "" at the beginning.
	Scan(ctx context.Context, acct relay.AccountID, in Scope, after ICCID, limit int) ([]ICCID, error)

	// Attach puts SIMs into a pool, all or none. It returns Refusals: BadICCID for
	// one that the account does not have, NotFree for one in another pool, NoPool.
	Attach(ctx context.Context, acct relay.AccountID, pool string, iccids []ICCID) error

	// Detach takes SIMs out of a pool, all or none. It returns Refusals: BadICCID
	// for one that is not in it, NoPool.
	Detach(ctx context.Context, acct relay.AccountID, pool string, iccids []ICCID) error

	// Declare saves SIMs as an inventory declares them, see Declared.
	Declare(ctx context.Context, acct relay.AccountID, all []SIM, reset bool) error

	// Delete forgets a SIM; relay.KindNotFound if there is none.
	Delete(ctx context.Context, acct relay.AccountID, iccid ICCID) error
}

// Pools keeps pools.
type Pools interface {
	Get(ctx context.Context, acct relay.AccountID, id string) (Pool, error) // relay.KindNotFound if there is none
	Put(ctx context.Context, acct relay.AccountID, p Pool) error            // a new one
	// Change is like that of SIMs.
	Change(ctx context.Context, acct relay.AccountID, id string, change func(*Pool) error) (Pool, error)
}

// Subscribers keeps subscribers with the indexes of their list.
type Subscribers interface {
	Get(ctx context.Context, acct relay.AccountID, id string) (Subscriber, error) // relay.KindNotFound if there is none
	Put(ctx context.Context, acct relay.AccountID, s Subscriber) error            // a new one
	List(ctx context.Context, acct relay.AccountID, q Query) ([]Subscriber, int, error)
}

// LimitEnforcer suspends SIMs that have reached a limit that blocks. It observes usage
// itself; callers report SIMs that were activated or whose limit has changed.
type LimitEnforcer interface {
	// EnforceSIMs suspends those of an account's SIMs that are in service although they,
	// or their pool, have reached a limit that blocks.
	EnforceSIMs(ctx context.Context, acct relay.AccountID, iccids []ICCID) error
	// EnforcePool does so for all SIMs in a pool.
	EnforcePool(ctx context.Context, acct relay.AccountID, id string) error
}

// Callbacks stores the callback URLs of accounts.
type Callbacks interface {
	SetCallback(ctx context.Context, acct relay.AccountID, url string) error
}

// Prober checks whether a URL can be reached: it makes a test request, guarded like
// every outgoing request. Its error says why not; relay.KindUnavailable means that
// the request could not be made.
type Prober interface {
	Probe(ctx context.Context, acct relay.AccountID, url string) error
}

// Ref names a SIM of an account.
type Ref struct {
	Account relay.AccountID
	ICCID   ICCID
}

// Search selects SIMs of one or all accounts; empty fields select all.
type Search struct {
	Account relay.AccountID
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
	Account relay.AccountID
	SIM
}
