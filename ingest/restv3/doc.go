// Package restv3 is the REST surface of SIM management, /v3/mno/…, after
// document 2 of the specification. The token is in X-Auth-Token, with the scope
// cellular.
//
// Answers stand in an envelope: success, message, data, and meta for lists. What
// is wrong with parameters is 422, "Validation error." with errors, a map of the
// parameter to texts; operations on call records and usage say "The given data
// was invalid." and have no success, neither here nor when they are done. What
// another account has does not exist. While a back end is down, the store or the
// operator, every operation answers 424 with one fixed text.
package restv3
