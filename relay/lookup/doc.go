// Package lookup provides lookups of mobile numbers: the network that serves a number, and whether
// the subscriber can be reached (document 1 of the specification, endpoint 7).
//
// A result costs one credit, even if it is cached. NoAnswer and errors cost nothing. Concurrent
// lookups of the same number share a request.
package lookup
