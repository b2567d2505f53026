// Package delivery does what was decided: it brings messages and events to
// what we do not own. Here are the two rules that every way out shares: the
// judge of an attempt (Classify, ClassifyMail) and the times of the attempts
// (Schedule). The ways out are its sub-packages.
//
// The judge follows "Choices: messaging and relays" of the contract and the
// Standard Webhooks recommendation (410 ends, Retry-After is honoured). Where
// both are silent:
//
//   - 3xx is dead at once, as other misconfigurations of an endpoint are: the
//     same request will be redirected tomorrow as well. The reason says where to.
//   - 408 and 425 retry: they ask for the same request again.
//   - An answer outside 200 to 599 is judged as 5xx (RFC 9110, section 15).
//   - An endpoint whose address is not public is dead at once.
//   - Own faults are a cancelled context, a resolver that does not answer at
//     all, exhausted descriptors, ports or buffers, and what a way out marks
//     with OwnFault, for example the operator's mail server being down. They
//     are tried again and never use up an attempt. A name that does not exist,
//     or whose zone is broken (SERVFAIL), is the customer's and counts.
package delivery
