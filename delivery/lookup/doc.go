// Package lookup asks networks about mobile numbers: an HTTP back end, or a
// simulator that answers from the inventory's table of networks.
//
// The HTTP back end is asked with a GET and answers with the lookup result of
// document 1 of the specification, bare or in data. What is no such answer, and
// a redirect, count as a back end that is down: nothing is charged for them.
package lookup
