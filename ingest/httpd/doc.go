// Package httpd provides the HTTP server of all surfaces, with limits, request ids, authentication
// and error handling.
//
// Limits limits concurrent requests. Each kind of traffic has its own slots. Webhooks have more
// slots than REST and SOAP, because their senders seldom retry. Health checks, metrics, the
// console and the admin API need no slot. A request acquires a slot after authentication and
// releases it with the answer. It has no slot while its body arrives, while it waits for the
// result of a journalled entry, and while the client reads the answer, so that slow clients and
// long downloads do not delay other requests. If no slot is free, a request waits for a short
// time, which absorbs bursts, and is then refused before anything is stored. Accounts get slots in
// turns, up to their share. The memory of bodies and the number of connections are also limited.
// Searches and exports have additional slots, and keep them until the answer is written.
//
// The context of a request ends at the deadline of its kind. Handlers add deadlines only to wait
// for a shorter time.
//
// Fiber's strings refer to a buffer that is reused after the request. Surfaces copy strings that
// outlive the request. Packages below the surfaces do not use fiber.Ctx.
package httpd
