// Package usages keeps what SIMs used in the record store; it is a usage.Counters,
// a usage.Records and a usage.Reports.
//
// A record and what it adds to totals are one transaction, so that an id counts
// once whatever is killed or replayed. Records are kept for good. Reading goes in
// pages: neither memory nor a transaction grows with a file of millions.
package usages
