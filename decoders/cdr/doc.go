// Package cdr parses call detail records from switches and SIM operators.
//
// Parse parses records of SIP calls:
//
//   - FreeSWITCH's mod_json_cdr: the JSON of a call, bare or as the form field
//     cdr. The numbers come from the callflow's caller_profile.
//   - Asterisk's cdr_csv: lines of Master.csv in the order of the manual, with
//     or without uniqueid and userfield. Times are assumed to be UTC (usegmtime=yes).
//   - JSON objects {id, start, answer, end, duration, billsec, from, to,
//     disposition, trunk}, one per line or in an array. Times are ISO 8601.
//
// ParseUsage parses records of SIM usage: JSON objects {id, iccid, start_time, type, bytes,
// duration}, one per line or in an array, or CSV with these names as its header.
//
// An invalid record, such as one without an id or a start, is an error with its offset. The
// other records of the post are parsed.
package cdr
