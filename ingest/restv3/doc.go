// Package restv3 provides the REST operations of SIM management at /v3/mno/…. The token,
// which needs the scope cellular, is in X-Auth-Token or Authorization: Bearer.
//
// Answers have an envelope: success, message, data, and meta for lists. The answer to invalid
// parameters is 422, "Validation error." and errors, a map of parameters to reasons. In the
// operations that request reports on call records and usage, the answers 200 and 422 omit success,
// and the message of 422 is "The given data was invalid." A record of another account is answered
// like a missing one. While the store or the operator is down, every operation answers 424 with a fixed
// text.
package restv3
