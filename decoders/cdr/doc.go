// Package cdr reads call detail records, as switches and SIM operators post them.
//
// Of SIP calls (Parse):
//
//   - FreeSWITCH's mod_json_cdr: the JSON of a call, bare or as the form field
//     cdr; numbers are those of the callflow's caller_profile.
//   - Asterisk's cdr_csv: lines of Master.csv in the order of its manual, with
//     or without uniqueid and userfield. Times are taken as UTC (usegmtime=yes).
//   - JSON objects {id, start, answer, end, duration, billsec, from, to,
//     disposition, trunk}, one a line or in an array; times are ISO 8601.
//
// Of what SIMs use (ParseUses): JSON objects {id, iccid, start_time, type, bytes,
// duration}, one a line or in an array, or CSV with these names as its header.
//
// What is none of these is refused with its place; the other records of the same
// post are read all the same. A record without an id or a start is none.
package cdr
