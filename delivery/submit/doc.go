// Package submit submits accounts' messages to carriers: it leases messages that
// are due, routes each by the longest prefix of its number, and keeps as many
// parts in flight as the windows of the carrier's connections allow (specification 1,
// "States and transitions"; relay/message defines the records). A carrier may have several
// connections, the binds of one account at an SMSC: each part goes over the one with the
// most room. When one is lost, the others take the parts that it has not sent.
//
// Before a part is submitted, the store marks it as being sent; its outcome is
// saved in batches. A part that a crash left marked may have been accepted: it
// is submitted again only to a carrier that recognizes duplicates. For any other
// carrier its outcome is unknown, and only an operator can resend it.
//
// A carrier that throttles or is unavailable never makes a message fail: its queue
// pauses, longer each time, and then submits one part. A message that fails otherwise
// is retried, after as long as it has waited so far, until a day after it was to be
// sent or was resent. A message to a number without a carrier is rejected and refunded.
//
// Who has a part, and what follows if the gateway is killed then, or cannot reach the
// database:
//
//	step                        row of the part       killed                         database down
//	order saved, Dispatch       pending, leased       leased again after 15 s        the order is answered 503
//	waiting in a carrier queue  pending, leased       the same                       leases expire, parts are dropped and leased again
//	Begin marked it             sending, leased       unknown, or submitted again    parts return to the queue
//	                                                  if the carrier is idempotent
//	submitted, no answer yet    sending, leased       the same                       the outcome waits in memory
//	outcome saved (Settle)      accepted, rejected,   nothing is lost                -
//	                            or pending until the
//	                            time of its retry
package submit
