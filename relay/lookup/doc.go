// Package lookup provides lookups of mobile numbers: which network serves a number, and
// whether the subscriber can be reached (document 1 of the specification, endpoint 7).
//
// An answer of a network costs one credit, including a cached answer. "No answer from the
// network" and a back end that is down cost nothing. Concurrent lookups of one number make
// one request.
package lookup
