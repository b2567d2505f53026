// Package lookup finds the network of a mobile number: by an HTTP back end, or by a
// simulator with the inventory's table of networks.
//
// The response of the HTTP back end to a GET is the lookup result of document 1 of the
// specification, at the top level or in the member data. Any other response counts as an
// unavailable back end, for which nothing is charged.
package lookup
