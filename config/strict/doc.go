// Package strict reads YAML and JSON documents into Go structs and reports
// every mistake at once, each with the path of its field and what was expected:
//
//	accounts[0].relays.geo[1].prefix: expected digits, got "abc"
//	accounts[0].credt: unknown field, did you mean "credit"?
//
// Field names come from the json tag, so that one tag serves reading and
// writing. Two more tags describe shapes that people write by hand:
// strict:"one" on a list takes a single entry without its brackets, and
// strict:"scalar" on a struct's field lets a plain value stand for the struct.
//
// It refuses unknown and repeated fields, a second document, merge keys, values
// of another type (a quoted number is text), documents that are too large, too
// deep, or grow too much through aliases.
package strict
