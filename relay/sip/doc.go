// Package sip provides the records of SIP calls, archives of them, and the trunks of
// accounts (document 1 of the specification, endpoints 16 to 18).
//
// A job makes each requested archive. The archive can be downloaded with its handle until two hours
// after the request. It is a ZIP file of CSV files in the layout UKv3a, as this project interprets
// that name, with all times in UTC. A cell that a spreadsheet would run as a formula begins with an
// apostrophe.
package sip
