// Package strict reads YAML and JSON documents into Go structs and reports all mistakes together,
// each with the path of its field and the expected value:
//
//	accounts[0].relays.geo[1].prefix: expected 1 to 15 digits, got "abc"
//	accounts[0].credt: unknown field, did you mean "credit"?
//
// The json tag has the name of a field. Two more tags allow short forms: strict:"one" on a list
// accepts a single element without brackets, and strict:"scalar" on a field of a struct accepts
// a plain value of this field in place of the struct.
//
// Decode refuses unknown and repeated fields, a second document, merge keys, values of another type
// (a quoted number is text), and documents that are too large or too deep, or whose aliases
// repeat too many values.
package strict
