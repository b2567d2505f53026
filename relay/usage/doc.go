// Package usage keeps what SIMs used, hands it out as CDR files and as reports by
// subscriber, and holds monthly limits to it, after document 2 of the
// specification: endpoints 13 to 16 and the limits of 6, 17 and 18.
//
// A record counts once, by its id, for its SIM and for the pool that the SIM is in
// when the record arrives, in the calendar month (UTC) in which it started. Where
// a limit is crossed, recipients and the account's callback are notified, once a
// month each, the SIM's own limit first, then the pool's. A limit that blocks is held
// whenever usage is at or above it: after records, and after anything else that may
// bring a SIM into service, of which the Meter is notified. It refuses records of SIMs
// that the account does not have.
package usage
