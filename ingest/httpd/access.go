package httpd

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/tracing"
)

// requestContext is the context of a request; it holds the request's id and its span,
// nil for none. Its deadline moves while the request is read: a handler may have taken the
// context before the body has arrived.
type requestContext struct {
	context.Context
	id     string
	span   *tracing.Active
	cancel context.CancelFunc
	timer  *time.Timer  // calls cancel at the deadline
	due    atomic.Int64 // the deadline, Unix ns
}

// newRequestContext returns a context that ends after a time, and when end is called.
func newRequestContext(id string, span *tracing.Active, d time.Duration) *requestContext {
	r := &requestContext{id: id, span: span}
	r.Context, r.cancel = context.WithCancel(context.Background())
	if span != nil {
		r.Context = tracing.NewContext(r.Context, span.Parent())
	}
	r.due.Store(time.Now().Add(d).UnixNano())
	r.timer = time.AfterFunc(d, r.cancel)
	return r
}

// extend has the context end after a time from now on, unless it has ended.
func (r *requestContext) extend(d time.Duration) {
	r.due.Store(time.Now().Add(d).UnixNano())
	r.timer.Reset(d)
}

// end ends the context.
func (r *requestContext) end() {
	r.timer.Stop()
	r.cancel()
}

// Deadline implements context.Context.
func (r *requestContext) Deadline() (time.Time, bool) { return time.Unix(0, r.due.Load()), true }

// Err implements context.Context.
func (r *requestContext) Err() error {
	err := r.Context.Err()
	if err != nil && time.Now().UnixNano() >= r.due.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// requestIDKey is the key of a request's id in its context.
type requestIDKey struct{}

// Value implements context.Context.
func (r *requestContext) Value(key any) any {
	if key == (requestIDKey{}) {
		return r.id
	}
	return r.Context.Value(key)
}

// RequestID returns the id of the request that a context belongs to; "" if it belongs
// to none.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// requestID returns the id that the client, or a proxy before it, gave the request, or
// else a new one.
func (o *Options) requestID(c *fiber.Ctx) string {
	if id := c.Get(fiber.HeaderXRequestID); wellFormedID(id) {
		return strings.Clone(id) // the request's buffer is reused
	}
	return o.nextID()
}

// nextID returns a new request id.
func (o *Options) nextID() string { return o.Seed + strconv.FormatUint(o.count.Add(1), 36) }

// maxRequestID is the length of the longest id that is taken from a request.
const maxRequestID = 128

// wellFormedID reports whether an id may be copied to answers and logs.
func wellFormedID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for i := range len(id) {
		if b := id[i]; !(b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9' || strings.IndexByte("-._~:/+=@", b) >= 0) {
			return false
		}
	}
	return true
}

// knownMethod returns a method, or "other": anybody may invent some.
func knownMethod(method string) string {
	for _, known := range fiber.DefaultMethods {
		if method == known {
			return known
		}
	}
	return "other"
}

// observed passes what handler answers to Observe.
func (o *Options) observed(handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	if o.Observe == nil {
		return handler
	}
	return func(c *fasthttp.RequestCtx) {
		handler(c)
		if state, ok := c.UserValue(stateKey{}).(*requestState); ok {
			o.Observe(state.method, state.route, c.Response.StatusCode(), time.Since(state.began))
		}
	}
}

// traced ends the spans of requests that handler answers.
func (o *Options) traced(handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	if o.Tracer == nil {
		return handler
	}
	return func(c *fasthttp.RequestCtx) {
		handler(c)
		state, ok := c.UserValue(stateKey{}).(*requestState)
		if !ok || state.ctx.span == nil {
			return
		}
		span, status := state.ctx.span, c.Response.StatusCode()
		span.Name(state.method + " " + state.route)
		span.Set("http.request.method", state.method)
		span.Set("http.route", state.route)
		span.Set("http.response.status_code", strconv.Itoa(status))
		span.Set("penstock.request_id", state.ctx.id)
		if state.account != 0 {
			span.Set("penstock.account", state.account.String())
		}
		failed := ""
		if status >= fiber.StatusInternalServerError {
			failed = strconv.Itoa(status)
		}
		span.End(time.Now(), failed)
	}
}

// span begins the span of a request, unless it only asks how the gateway does.
func (o *Options) span(c *fiber.Ctx, began time.Time) *tracing.Active {
	if o.Tracer == nil {
		return nil
	}
	switch c.Path() {
	case "/healthz", "/readyz", "/metrics":
		return nil
	}
	return o.Tracer.Receive(c.Get(tracing.Header), "request", began)
}

// accessLog writes a line for every request that handler answers, if that is enabled.
func (o *Options) accessLog(handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	if !o.AccessLog {
		return handler
	}
	return func(c *fasthttp.RequestCtx) {
		handler(c)
		state, ok := c.UserValue(stateKey{}).(*requestState)
		if !ok {
			return
		}
		client, _ := netip.AddrFromSlice(c.RemoteIP())
		client = behindProxies(client.Unmap(), state.proxies, c.Request.Header.PeekAll(fiber.HeaderXForwardedFor))
		o.Logger.InfoContext(state.ctx, "request",
			"client", client.String(), "method", string(c.Method()), "path", loggedPath(c, state.route), "route", state.route,
			"status", c.Response.StatusCode(), "bytes", bytesOf(&c.Response), "ms", float64(time.Since(state.began).Microseconds())/1000,
			"account", state.account)
	}
}

// maxLoggedPath bounds a path in the log, in bytes.
const maxLoggedPath = 256

// loggedPath returns the path of a request without its query, which may hold
// credentials. A token in the path is left out too.
func loggedPath(c *fasthttp.RequestCtx, route string) string {
	if strings.Contains(route, ":token") {
		return route
	}
	return decoders.Clip(strings.ToValidUTF8(string(c.Path()), "\uFFFD"), maxLoggedPath)
}

// bytesOf is the length of a response's body; -1 if it is not known before it is sent.
func bytesOf(r *fasthttp.Response) int {
	switch {
	case r.SkipBody || r.StatusCode() == fiber.StatusNoContent || r.StatusCode() == fiber.StatusNotModified:
		return 0
	case r.IsBodyStream():
		return r.Header.ContentLength()
	}
	return len(r.Body())
}
