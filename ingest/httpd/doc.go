// Package httpd is the HTTP server of all surfaces. It provides limits, request ids,
// authentication, and answers to errors.
//
// Limits limits concurrent requests. Each kind of traffic has its own slots; webhooks, whose
// senders seldom retry, have more than REST and SOAP. Health checks, metrics, the console and
// the admin API need no slot. A request acquires a slot after authentication and releases it
// with its answer. It has no slot while its body arrives, while it waits for the result of a
// journalled entry, and while its answer is read, so that slow clients and long downloads do not
// delay other requests. Without a free slot a request waits for a short time, which absorbs
// bursts, and is then refused before anything is stored. Accounts get slots in turns, each at
// most its share. The memory of bodies and the number of connections are limited too. Searches
// and exports have slots in addition to those of their surface, and keep them until their answer
// is written.
//
// The context of a request ends at the deadline of its kind. Handlers add deadlines only to wait
// for a shorter time.
//
// Fiber's strings refer to a buffer that is reused after the request. Surfaces copy the strings
// that outlive the request; packages below the surfaces do not use fiber.Ctx.
package httpd
