// Package account provides accounts, their tokens and scopes, and the usernames of the SOAP
// interface.
//
// Tokens are stored as SHA-256 hashes, passwords as Argon2id hashes. A token gives access to its own
// account only.
//
// Gateways cache tokens. Each change of a token increments the version "tokens", which
// every gateway polls, so that a token revoked at one gateway stops working at the others
// within about a second.
package account
