// Package contracttest holds handlers to their contract, for tests: the routes that an app
// has mounted are the operations of an OpenAPI document, in both directions, and requests and
// answers match the document. A field, a parameter, a header or a status that the document
// does not name is a difference, and so is a documented answer that no test has seen.
//
// It reads documents after OpenAPI 3.0.3. An operation whose path item says
// x-wildcard: true takes the rest of a path as its last parameter.
package contracttest
