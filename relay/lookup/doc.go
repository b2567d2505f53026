// Package lookup finds out which network serves a mobile number, and whether
// that can be reached, after document 1 of the specification, endpoint 7.
//
// A lookup costs one credit, taken when a network's word is given, also one that
// is remembered; "no answer from the network" and a back end that is down cost
// nothing. Lookups of one number at the same time make one request.
package lookup
