package redisstore

import "github.com/penstock/penstock/relay/account"

// keyMessageNext is a counter: the last entry id that was reserved.
func keyMessageNext() string { return "{messages}:next" }

// keyMessageAccounts is a set of the ids of accounts that have had messages. An
// account is added before its first message and never removed.
func keyMessageAccounts() string { return "{messages}:accounts" }

// keyMessages is a hash, the messages of an account: id → JSON of what never
// changes. Messages of which nothing waits any more are removed after the
// retention of deliveries.
func keyMessages(acct account.ID) string { return tag(acct) + ":messages" }

// keyMessageParts is a hash, where the parts of messages stand:
//
//	<id>        <parts>|<ms when it was to be sent>|<1 if it wants reports>
//	<id>/<part> <state>|<ms when it is tried again>|<how often its state has
//	            changed>|<name of the call that wrote down that it is about to be
//	            handed over>|<ms of the last change>|<carrier>|<carrier's id>;
//	            absent: pending, as it was saved
func keyMessageParts(acct account.ID) string { return tag(acct) + ":messages:parts" }

// keyMessageNotes is a hash: "<message id>/<part>/why" → reason,
// "<message id>/<part>/line" → delivery report.
func keyMessageNotes(acct account.ID) string { return tag(acct) + ":messages:notes" }

// keyMessagesDue is a sorted set of the ids of messages of which a part waits;
// score: ms of the next attempt or of the lease's end.
func keyMessagesDue(acct account.ID) string { return tag(acct) + ":messages:due" }

// keyMessagesPending is a sorted set: "<message id>/<part>" of pending parts;
// score: the part's entry id.
func keyMessagesPending(acct account.ID) string { return tag(acct) + ":messages:pending" }

// keyMessagesAll is a sorted set of the ids of messages; score: the id.
func keyMessagesAll(acct account.ID) string { return tag(acct) + ":messages:all" }

// keyMessagesEnded is a sorted set of the ids of messages of which nothing waits;
// score: ms when they are removed.
func keyMessagesEnded(acct account.ID) string { return tag(acct) + ":messages:ended" }

// keyMessagesUntold is a sorted set of the ids of messages with something to
// report; score: ms since when.
func keyMessagesUntold(acct account.ID) string { return tag(acct) + ":messages:untold" }

// keyMessageOnce is a string: "<order>|<answer>" of the order that had a client's
// key first. Expires.
func keyMessageOnce(acct account.ID, key string) string { return tag(acct) + ":messages:once:" + key }

// keyMessageRef is a string: the part that a carrier's id names,
// "<account>/<message id>/<part>/<number>". Expires.
func keyMessageRef(carrier, id string) string { return "message:part:{" + carrier + ":" + id + "}" }

// keyMessageEarly is a hash: list → JSON objects of receipts that came before the
// id was bound, each with a comma after it; owner → the part that they are of,
// once the id is bound. Expires.
func keyMessageEarly(carrier, id string) string { return keyMessageRef(carrier, id) + ":early" }
