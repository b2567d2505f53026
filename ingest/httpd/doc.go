// Package httpd is the HTTP server that every surface mounts on: limits,
// request ids, authentication and scopes, and the answers for what goes wrong
// before a surface is reached.
//
// Fiber hands out strings that point into a buffer it will use again. Surfaces
// copy what they keep at their own boundary; below that no fiber.Ctx exists.
package httpd
