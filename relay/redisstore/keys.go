package redisstore

import "github.com/penstock/penstock/relay/account"

// Every key the gateway has in Redis is named here and nowhere else; asynq's
// own begin with "asynq:".
//
// What one script touches carries one hash tag: {a<account id>} for the records
// of an account, so that any number of its keys can change in one step on a
// cluster. Global keys have a tag of their own each and are changed alone.
// Ids hold no braces.

// tag is the hash tag of an account, alone in braces.
func tag(acct account.ID) string { return "{a" + acct.String() + "}" }

// ---- outbox: deliveries -------------------------------------------------

// keyOutboxAccounts is a set of the ids of accounts that have deliveries.
// An account is added before its first delivery and never removed.
func keyOutboxAccounts() string { return "{outbox}:accounts" }

// keyDelivery is a hash, one delivery. Fields:
//
//	static   JSON of what never changes
//	state    queued, retrying, delivered, simulated or dead
//	reason   why it retries or is dead
//	due      ms of the next attempt or of the end of the lease; absent when ended
//	leased   1 while due is the end of a lease
//	tries    attempts since creation or the last replay
//	attempts JSON objects of all attempts, each with a comma after it
//	ats      times (ns) of all attempts, each with a comma after it
//
// Without expiry while it waits; an ended one expires with its state's
// retention.
func keyDelivery(acct account.ID, id string) string { return tag(acct) + ":delivery:" + id }

// keyDeliveryPrefix is what keyDelivery begins with, for scripts that build the
// names of an account's deliveries themselves.
func keyDeliveryPrefix(acct account.ID) string { return tag(acct) + ":delivery:" }

// keyOutboxDue is a sorted set of delivery ids; score: ms of the next attempt
// or of the lease's end. Without expiry.
func keyOutboxDue(acct account.ID) string { return tag(acct) + ":outbox:due" }

// keyOutboxCreated is a sorted set of delivery ids; score: ms of creation.
// Members go when their record expires.
func keyOutboxCreated(acct account.ID) string { return tag(acct) + ":outbox:created" }

// keyOutboxState is a sorted set of the ids of deliveries in a state; score: ms
// of creation. Members go when their record expires.
func keyOutboxState(acct account.ID, state string) string {
	return tag(acct) + ":outbox:state:" + state
}

// keyOutboxEnds is a sorted set of the ids of ended deliveries; score: ms of
// the end of their retention. It tells which members to drop from the lists.
func keyOutboxEnds(acct account.ID) string { return tag(acct) + ":outbox:ends" }

// ---- account: accounts, tokens, the inventory ---------------------------

// ---- iot: devices, sensors, decoders, latest values ---------------------

// ---- event: marks of the journal's records ------------------------------

// ---- relays: relays, routes, parts of messages --------------------------
