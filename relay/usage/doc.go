// Package usage stores the usage of SIMs, exports it as CDR files and reports, and enforces
// monthly limits (document 2 of the specification: endpoints 13 to 16, and the limits of
// endpoints 6, 17 and 18).
//
// A record is counted once, by its id, in the calendar month (UTC) in which it started: for its
// SIM, and for the pool that the SIM is in when the record arrives. When usage reaches a warning
// or a limit, the Meter notifies the recipients and the account's callback URL, once a month each,
// for the SIM first and then for the pool. The Meter enforces a blocking limit after each record,
// and when callers report SIMs that came into service. It refuses records of SIMs that the
// account does not have.
package usage
