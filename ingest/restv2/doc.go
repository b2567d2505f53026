// Package restv2 provides the REST operations of messaging at /v2/…: the account's credit, sending,
// previewing, listing and deleting messages, network lookup, the relays of inbound messages, SIP
// records, and the inbox of desktopsms, which is an extension of the specification. The token is in
// X-Auth-Token or Authorization: Bearer.
//
// Records are in data, and lists have meta.pagination. The answer to invalid parameters is 422,
// with the reasons in message and the names of the parameters in the string errors. The type of
// a body must be application/json. A relay of another account is answered like a missing one.
package restv2
