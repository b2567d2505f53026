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

// requestContext is the context of a request, with the request's id and span. The deadline can be
// extended, because handlers may use the context before the body has arrived.
type requestContext struct {
	context.Context
	id       string
	span     *tracing.Active // nil if the request is not traced
	cancel   context.CancelFunc
	timer    *time.Timer  // calls cancel at the deadline
	deadline atomic.Int64 // Unix ns
}

// newRequestContext returns a context that ends after d, or when end is called.
func newRequestContext(id string, span *tracing.Active, d time.Duration) *requestContext {
	r := &requestContext{id: id, span: span}
	r.Context, r.cancel = context.WithCancel(context.Background())
	if span != nil {
		r.Context = tracing.NewContext(r.Context, span.Parent())
	}
	r.deadline.Store(time.Now().Add(d).UnixNano())
	r.timer = time.AfterFunc(d, r.cancel)
	return r
}

// extend moves the deadline to d from now, unless the context has ended.
func (r *requestContext) extend(d time.Duration) {
	r.deadline.Store(time.Now().Add(d).UnixNano())
	r.timer.Reset(d)
}

func (r *requestContext) end() {
	r.timer.Stop()
	r.cancel()
}

// Deadline implements context.Context.
func (r *requestContext) Deadline() (time.Time, bool) { return time.Unix(0, r.deadline.Load()), true }

// Err implements context.Context.
func (r *requestContext) Err() error {
	err := r.Context.Err()
	if err != nil && time.Now().UnixNano() >= r.deadline.Load() {
		return context.DeadlineExceeded
	}
	return err
}

type requestIDKey struct{}

// Value implements context.Context.
func (r *requestContext) Value(key any) any {
	if key == (requestIDKey{}) {
		return r.id
	}
	return r.Context.Value(key)
}

// RequestID returns the id of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

func (o *Options) nextID() string { return o.Seed + strconv.FormatUint(o.count.Add(1), 36) }

// maxRequestID is the maximum length in bytes of a request id from a client.
const maxRequestID = 128

// isValidID reports whether a request id from a client may be copied to answers and logs.
func isValidID(id string) bool {
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

// withReport returns a handler that reports each answered request to the access log, to Observe
// and in its span.
func (o *Options) withReport(handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(c *fasthttp.RequestCtx) {
		handler(c)
		state, ok := c.UserValue(stateKey{}).(*requestState)
		if !ok {
			return
		}
		status := c.Response.StatusCode()
		if o.AccessLog {
			client, _ := netip.AddrFromSlice(c.RemoteIP())
			client = clientBehindProxies(client.Unmap(), state.proxies, c.Request.Header.PeekAll(fiber.HeaderXForwardedFor))
			path := state.route // neither the query nor a token in the path is logged
			if !strings.Contains(path, ":token") {
				path = decoders.Clip(strings.ToValidUTF8(string(c.Path()), "\uFFFD"), maxLoggedPath)
			}
			o.Logger.InfoContext(state.ctx, "request",
				"client", client.String(), "method", string(c.Method()), "path", path, "route", state.route,
				"status", status, "bytes", bodyLength(&c.Response), "ms", float64(time.Since(state.startedAt).Microseconds())/1000,
				"account", state.account)
		}
		if o.Observe != nil {
			o.Observe(state.method, state.route, status, time.Since(state.startedAt))
		}
		if span := state.ctx.span; span != nil {
			span.Name(state.method + " " + state.route)
			span.Set("http.request.method", state.method)
			span.Set("http.route", state.route)
			span.Set("http.response.status_code", strconv.Itoa(status))
			span.Set("penstock.request_id", state.ctx.id)
			if state.account != 0 {
				span.Set("penstock.account", state.account.String())
			}
			failure := ""
			if status >= fiber.StatusInternalServerError {
				failure = strconv.Itoa(status)
			}
			span.End(time.Now(), failure)
		}
	}
}

// beginSpan begins the span of a request. It returns nil for health checks and without a Tracer.
func (o *Options) beginSpan(c *fiber.Ctx, startedAt time.Time) *tracing.Active {
	if o.Tracer == nil {
		return nil
	}
	switch c.Path() {
	case "/healthz", "/readyz", "/metrics":
		return nil
	}
	return o.Tracer.Receive(c.Get(tracing.Header), "request", startedAt)
}

// maxLoggedPath is the maximum length of a path in the log, in bytes.
const maxLoggedPath = 256

// bodyLength returns the length of the body of a response, or -1 for a stream of unknown length.
func bodyLength(r *fasthttp.Response) int {
	switch {
	case r.SkipBody || r.StatusCode() == fiber.StatusNoContent || r.StatusCode() == fiber.StatusNotModified:
		return 0
	case r.IsBodyStream():
		return r.Header.ContentLength()
	}
	return len(r.Body())
}
