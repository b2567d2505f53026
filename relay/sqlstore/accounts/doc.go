// Package accounts keeps accounts, their tokens and logins, their SIP trunks and
// the inventory that declares them, in SQL; see relay/account and relay/sip.
//
// Gateways remember tokens. Each change of a token counts up the version
// "tokens", which every gateway polls, so a token that was revoked at one stops
// working at the others within a second or so.
package accounts
