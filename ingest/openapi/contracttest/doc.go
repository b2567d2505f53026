// Package contracttest compares handlers with an OpenAPI document in tests. The routes of an app
// must be the operations of the document, and requests and answers must match it. Undocumented
// fields, parameters, headers and statuses are differences. Checker.Uncovered lists the documented
// answers that no exchange contained.
//
// The package reads documents of OpenAPI 3.0.3. The last parameter of a path item with x-wildcard: true
// matches the whole remaining path.
package contracttest
