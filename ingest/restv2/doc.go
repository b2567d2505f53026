// Package restv2 is the REST surface of messaging, /v2/…, after document 1 of
// the specification: the account's credit (endpoint 1), sending, previewing, listing
// and deleting messages (2 to 6), network lookup (7), the relays of inbound messages
// (8 to 15), SIP records (16 to 18), and the inbox of desktopsms, which the
// specification does not name. The token is in X-Auth-Token or Authorization: Bearer.
//
// Records are in data, and lists have meta.pagination. The answer to invalid parameters is 422,
// with the reasons in message and the names of the parameters in the string errors. The type of
// a body must be application/json. A relay of another account is answered like a missing one.
package restv2
