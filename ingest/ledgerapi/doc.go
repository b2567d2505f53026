// Package ledgerapi provides the REST operations of ledgers and tokens at /ledgers/…. Requests
// have an API token in Authorization: Bearer.
//
// The list of ledgers is a JSON array; the key of the authority, an export and a history are
// documents. The generation of tokens is answered with the id of its job as a JSON string, other
// operations with a job with {"jobid": …}, all others with {"data": …}. Every problem of a token
// has the same text, so that the answer does not reveal which tokens exist. The link of a token,
// /t/…, requires no credentials and redirects a browser.
package ledgerapi
