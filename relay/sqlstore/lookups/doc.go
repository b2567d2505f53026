// Package lookups keeps what networks said about numbers, for as long as that is
// to be remembered, and the networks of the simulator, in SQL; see relay/lookup.
package lookups
