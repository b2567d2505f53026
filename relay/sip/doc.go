// Package sip provides the records of SIP calls, archives of these records, and the trunks of
// accounts.
//
// A job makes each requested archive. The archive can be downloaded with its handle until two hours
// after the request. It is a ZIP file of CSV files in the layout UKv3a, whose columns Header lists,
// with all times in UTC. A cell that a spreadsheet would run as a formula begins with an apostrophe.
package sip
