// Package lookup provides lookups of mobile numbers: which network serves a number, and
// whether the subscriber can be reached (document 1 of the specification, endpoint 7).
//
// A result costs one credit, also if it is cached. NoAnswer and errors cost nothing. Concurrent
// lookups of one number share a request.
package lookup
