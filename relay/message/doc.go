// Package message sends messages of accounts: it validates an order, splits it
// into parts, charges for them and stores each part until a carrier has accepted
// it and the network has reported its delivery (specification 1, SOAP operations
// and endpoints 1 to 6, events 1 and 2).
//
// A Message goes to one destination and has one or more parts; a part costs one
// credit, is an entry of the pending list and has a state of its own. An order
// is saved, charged and queued in one atomic step. Queued messages are leased
// under a lease. The state of a part becomes Sending before it is submitted to a
// carrier, so that after a crash a part that may have been sent is not repeated.
//
// A message is a row that never changes (message) and a narrow one that does
// (message_state), so that an attempt rewrites neither the text nor the indexes
// of numbers. A batch is read under its locks, changed here, and written back:
// two statements, however many messages there are.
//
// It refuses an invalid order with the names of the parameters
// (relay.KindInvalid) and one that exceeds the credit (relay.KindNoCredit).
package message
