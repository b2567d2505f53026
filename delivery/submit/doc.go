// Package submit submits accounts' messages to carriers: it leases messages that
// are due, routes each by the longest prefix of its number, and keeps as many
// parts in flight as the windows of the carrier's connections allow (specification 1,
// "States and transitions"; relay/message defines the records). A carrier may have several
// connections, the binds of one account at an SMSC. Each part is submitted over the connection
// with the most room in its window. When a connection is lost, its unsent parts are submitted over
// the other connections.
//
// Before a part is submitted, its state becomes sending in the store; outcomes are saved in
// batches. After a crash, a part in the state sending may have been accepted: it is submitted
// again only to a carrier that recognizes duplicates. For any other carrier its outcome is
// unknown, and only an operator can resend it.
//
// A message does not fail because its carrier throttles or is unavailable: the queue of the
// carrier pauses, each time longer up to 30 s, or as long as the carrier requests, and then submits
// one part. A part that fails otherwise is retried after a wait equal to its age, at least 5 s and
// at most 1 h, and is rejected and refunded after a day. The age counts from the scheduled time or
// from the last resend. A message to a number without a carrier is rejected and refunded.
//
// For each step, the state of a part and the consequences of a crash and of an unavailable
// database are:
//
//	step                        row of the part       crash                          database unavailable
//	order saved, Dispatch       pending, leased       leased again after 15 s        the order is answered 503
//	waiting in a carrier queue  pending, leased       the same                       leases expire, parts are dropped and leased again
//	MarkSending                 pending or sending    as before or after the step    it fails: parts return to the queue
//	MarkSending has returned    sending, leased       unknown, or submitted again    the outcome waits in memory
//	                                                  if the carrier is idempotent
//	submitted, no answer yet    sending, leased       the same                       the same
//	outcome saved (Settle)      accepted, rejected,   nothing is lost                -
//	                            or pending until the
//	                            time of its retry
package submit
