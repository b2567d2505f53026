// Package sip keeps the records of SIP calls and hands them out in archives,
// after document 1 of the specification, endpoints 16 to 18.
//
// An archive is asked for, made by a job, and may be fetched with its handle until
// two hours after it was asked for. It is a zip of CSV files in the layout UKv3a,
// our reading of that name, with every time in UTC. A cell that a spreadsheet
// would run as a formula has an apostrophe before it.
package sip
