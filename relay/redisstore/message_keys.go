package redisstore

import (
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/message"
)

// keyMessageNext is a counter: the last entry id that was reserved.
func keyMessageNext() string { return "{messages}:next" }

// keyMessageAccounts is a set of the ids of accounts that have had messages. An
// account is added before its first message and never removed.
func keyMessageAccounts() string { return "{messages}:accounts" }

// keyMessage is a hash, one message. Fields:
//
//	static  JSON of what never changes
//	n       number of parts
//	at      ms when it was to be sent first
//	due     ms of the next attempt or of the lease's end; 0 when nothing waits
//	report  1 if the account wants reports
//	v       counts changes of states
//	s<part> state, from 0; absent: pending
//	at<part> ms when the part is tried again; absent: at
//	c<part>, r<part> carrier, its id of the part
//	b<part> name of the call that wrote down that it is about to be handed over
//	why<part>, line<part> reason, delivery report
//	t<part> ms of the last change; absent: never changed
//
// Without expiry while a part waits; then it expires with the retention of
// deliveries, counted from the last time that nothing waited any more.
func keyMessage(acct account.ID, id message.ID) string { return keyMessages(acct) + id.String() }

// keyMessages is what the keys of an account's messages begin with.
func keyMessages(acct account.ID) string { return tag(acct) + ":message:" }

// keyMessagesDue is a sorted set of the ids of messages of which a part waits;
// score: ms of the next attempt or of the lease's end.
func keyMessagesDue(acct account.ID) string { return tag(acct) + ":messages:due" }

// keyMessagesPending is a sorted set: "<message id>/<part>" of pending parts;
// score: the part's entry id.
func keyMessagesPending(acct account.ID) string { return tag(acct) + ":messages:pending" }

// keyMessagesAll is a sorted set of the ids of messages; score: the id. Those that
// have expired go as new ones come.
func keyMessagesAll(acct account.ID) string { return tag(acct) + ":messages:all" }

// keyMessagesEnded is a sorted set of the ids of messages of which nothing waits;
// score: ms when they have expired.
func keyMessagesEnded(acct account.ID) string { return tag(acct) + ":messages:ended" }

// keyMessagesUntold is a sorted set of the ids of messages with something to
// report; score: ms since when.
func keyMessagesUntold(acct account.ID) string { return tag(acct) + ":messages:untold" }

// keyMessageOnce is a string: "<order>|<answer>" of the order that had a client's
// key first. Expires.
func keyMessageOnce(acct account.ID, key string) string { return tag(acct) + ":messages:once:" + key }

// keyMessageRef is a hash: to → "<account>/<message id>/<part>/<number>" that a carrier's
// id names; early → JSON objects of receipts that came before it was bound, each
// with a comma after it. Expires.
func keyMessageRef(carrier, id string) string { return "message:ref:" + carrier + ":" + id }
