// Package ledgerapi is the REST surface of ledgers and tokens, after document 3
// of the specification: /ledgers/…, Authorization: Bearer.
//
// Envelopes are literal: the list of ledgers is a bare array, a generation's job
// a bare string, the other jobs {"jobid"}; all else stands in data. Whatever is
// wrong with a token is refused in the same words. A token's link, /t/…, takes no
// credentials and leads a browser on.
package ledgerapi
