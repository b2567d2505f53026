// Package submit hands what accounts send to carriers: it claims messages that
// are due, routes each by the longest prefix of its number, and keeps as many
// parts under way as its carrier's window allows (specification 1, "States and
// transitions"; relay/message has the records).
//
// Before a part leaves, the store says that it is being sent; what the carrier
// says of it is saved in batches. So what a crash leaves as being sent may have
// arrived: a carrier that knows a part which it gets twice gets it again, for
// any other its outcome is unknown, and nothing sends it again but a person.
//
// A carrier that is throttling or away costs no message an attempt: all of its
// messages wait, longer each time, and it is then tried with one. What fails for
// reasons of the carrier's is tried again after as long as it has waited, for a
// day. A number that no carrier is for is rejected and refunded.
package submit
