// Package usage stores the usage of SIMs, exports it as CDR files and reports, and enforces
// monthly limits.
//
// A record is counted once, by its id, in the calendar month (UTC) in which it started: for its SIM,
// and for the pool that the SIM is in when the record arrives. When usage reaches a warning or a
// limit, the Meter notifies the recipients and the account's callback URL, once a month for the
// warning and once for the limit, first about the SIM and then about the pool. The Meter enforces a
// blocking limit after each record, and when callers report SIMs that came into service. It refuses
// records of SIMs that the account does not have.
package usage
