// Package account provides accounts, their tokens and scopes, and the usernames of the SOAP
// interface.
//
// Tokens are stored hashed; a token's traffic reaches its own account only. Passwords are
// stored as Argon2id hashes.
//
// Gateways cache tokens. Each change of a token increments the version "tokens", which
// every gateway polls, so that a token revoked at one gateway stops working at the others
// within about a second.
package account
