// Package submit submits accounts' messages to carriers: it leases messages that
// are due, routes each by the longest prefix of its number, and keeps as many
// parts in flight as the carrier's window allows (specification 1, "States and
// transitions"; relay/message defines the records).
//
// Before a part is submitted, the store marks it as being sent; its outcome is
// saved in batches. A part that a crash left marked may have been accepted: it
// is submitted again only to a carrier that recognizes duplicates. For any other
// carrier its outcome is unknown, and only an operator can resend it.
//
// A carrier that throttles or is unavailable costs no message an attempt: its
// queue pauses, longer each time, and then submits one part. A message that the
// carrier fails is retried, after as long as it has waited so far, for a day. A
// message to a number without a carrier is rejected and refunded.
package submit
