// Package ledgerapi provides the REST operations of ledgers and tokens at /ledgers/…. The token is
// in Authorization: Bearer.
//
// The list of ledgers is a JSON array, the answer to a generation is a JSON string, and the other
// operations with a job answer {"jobid"}. All other answers have data. Every problem of a token
// has the same text, so that the answer does not reveal which tokens exist. The link of a token,
// /t/…, requires no credentials and redirects a browser.
package ledgerapi
