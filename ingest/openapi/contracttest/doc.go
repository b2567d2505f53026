// Package contracttest holds handlers to their contract, for tests: the routes that an app
// has mounted are the operations of an OpenAPI document, in both directions, and requests and
// answers match the document. A field, a parameter, a header or a status that the document
// does not name is a difference, and so is a documented answer that no test has seen.
//
// It reads documents in OpenAPI 3.0.3. The last parameter of a path item with x-wildcard: true
// matches the whole remaining path.
package contracttest
