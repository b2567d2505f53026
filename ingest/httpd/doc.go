// Package httpd is the HTTP server that every surface mounts on: limits,
// request ids, authentication and scopes, and the answers for what goes wrong
// before a surface is reached.
//
// Limits bounds what waits in the gateway. Each kind of traffic has slots of its own for the
// requests that are worked on, more for webhooks than for REST and SOAP, so that webhooks,
// whose senders seldom try again, are refused last; health, metrics, console and the admin
// API need none. A request takes a slot when it is authenticated and returns it with its
// answer. It has none while its body is still arriving, while it waits for the result of what
// is journalled already, and while its answer is read, so that slow clients and long
// downloads take no room from short requests. Without a free slot it waits a moment, which
// absorbs bursts and slows down clients that send more than is taken; then it is refused,
// before anything is stored. Slots are given to accounts in turns, and none has more than its
// share: an account that floods waits for itself. The memory of bodies is bounded in the same
// way, and so are connections: at the limit one that waits for its client makes room.
// Searches and exports have slots in addition to those of their surface, and keep them until
// their answer is written: its memory and its statements are theirs until then.
//
// The context of a request ends at the deadline of its kind. Handlers add no deadlines
// except to wait less.
//
// Fiber hands out strings that point into a buffer it will use again. Surfaces
// copy what they keep at their own boundary; below that no fiber.Ctx exists.
package httpd
