// Package restv3 provides the REST operations of SIM management at /v3/mno/…. The token is in
// X-Auth-Token, with the scope cellular.
//
// Answers have an envelope: success, message, data, and meta for lists. The answer to invalid
// parameters is 422, "Validation error." and errors, a map of parameters to reasons. Answers of
// operations on call records and usage do not have success; their message for invalid
// parameters is "The given data was invalid." A record of another account is answered like a
// missing one. While the store or the operator is down, every operation answers 424 with a fixed
// text.
package restv3
