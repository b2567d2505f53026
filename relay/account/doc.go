// Package account holds who may do what: accounts, their tokens and scopes.
//
// Tokens are stored hashed; a token's traffic reaches its own account only.
package account
