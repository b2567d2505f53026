// Package delivery defines the rules that all senders share: how the result of an
// attempt is classified (Classify, ClassifyMail) and when attempts are made
// (Schedule). The senders are its sub-packages.
//
// The classification follows the Standard Webhooks recommendation (410 ends,
// Retry-After is honoured). Beyond that:
//
//   - 3xx is dead at once, like other misconfigurations of an endpoint: a later
//     attempt would be redirected too. The reason names the origin of the
//     target.
//   - 408 and 425 retry: they mean that the same request may be repeated.
//   - An answer outside 200 to 599 is classified as 5xx (RFC 9110, section 15).
//   - An endpoint whose address is not public is dead at once.
//   - Own faults are a cancelled context, a resolver that does not answer at
//     all, exhausted descriptors, ports or buffers, and errors that a sender
//     marks with OwnFault, for example when the operator's mail server is down.
//     They are retried and never use up an attempt. A host name that does not
//     exist, or whose zone is broken (SERVFAIL), is a fault of the customer,
//     and the attempt counts.
package delivery
