package httpd

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/tracing"
)

// Options configures the server; the zero value works.
type Options struct {
	BodyLimit int     // the maximum size of a body in bytes; surfaces have lower limits; 0 means 8 MiB
	Limits    *Limits // nil means the limits of the zero LimitOptions
	// TrustedProxies are the proxies whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	Logger         *slog.Logger // nil means slog.Default
	// Observe, if not nil, is called for every answered request with the registered route.
	Observe   func(method, route string, status int, duration time.Duration)
	AccessLog bool            // log a line for every request
	Tracer    *tracing.Tracer // begins the spans of requests; nil begins none
	// TLS means that the app is served over TLS. Answers then have Strict-Transport-Security.
	TLS bool
	// Seed is the prefix of generated request ids. It should differ between starts.
	Seed string

	count *atomic.Uint64
}

// App is the application to which surfaces add routes.
type App = fiber.App

// New returns an app with the middleware for all requests. Surfaces add routes, and the caller
// adds NotFound last. The app is served on a Listener.
//
// A handler is called before the body has arrived, so that a body takes no memory until the
// handler reads it with Body or RawBody. Fiber's BodyLimit is only the number of bytes that Fiber
// reads before the call.
func New(o Options) *App {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Limits == nil {
		o.Limits = NewLimits(LimitOptions{Logger: o.Logger})
	}
	o.BodyLimit = cmp.Or(o.BodyLimit, 8<<20)
	o.count = new(atomic.Uint64)
	app := fiber.New(fiber.Config{
		AppName:                      "penstock",
		DisableStartupMessage:        true,
		StreamRequestBody:            true,
		BodyLimit:                    1,
		DisablePreParseMultipartForm: true,
		ReadTimeout:                  30 * time.Second, // for the head of a request
		WriteTimeout:                 time.Minute,
		IdleTimeout:                  2 * time.Minute, // between requests of a connection
		ReadBufferSize:               maxHead,
		JSONEncoder:                  relay.EncodeJSON,
		ErrorHandler:                 errorHandler(o.Logger),
	})
	server := app.Server()
	server.ErrorHandler = headErrorHandler(o)
	server.Handler = o.finish(o.withReport(server.Handler))
	server.HeaderReceived = func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
		return fasthttp.RequestConfig{ReadTimeout: bodyGrace}
	}
	app.Use(guard(o))
	return app
}

// maxHead is the maximum size of the head of a request, in bytes. Every open connection has a
// buffer of this size.
const maxHead = 8 << 10

// guard assigns request ids, refuses ambiguous heads, releases the slots and memory of a request
// when it ends, and answers 500 after a panic.
func guard(o Options) fiber.Handler {
	return func(c *fiber.Ctx) (err error) {
		id := c.Get(fiber.HeaderXRequestID) // from the client or a proxy
		if isValidID(id) {
			id = strings.Clone(id) // the request's buffer is reused
		} else {
			id = o.nextID()
		}
		c.Set(fiber.HeaderXRequestID, id)
		startedAt := time.Now()
		state := &requestState{limits: o.Limits, startedAt: startedAt, proxies: o.TrustedProxies, kind: Webhooks, timeout: Webhooks.deadline()}
		state.ctx = newRequestContext(id, o.beginSpan(c, startedAt), state.timeout) // authentication sets the deadline of its kind
		c.Locals(stateKey{}, state)
		c.SetUserContext(state.ctx)
		defer func() {
			if p := recover(); p != nil {
				o.Logger.ErrorContext(c.UserContext(), "request panicked", "panic", p, "path", c.Route().Path, "stack", string(debug.Stack()))
				err = answerInternalError(c)
			}
			state.method, state.route = "other", c.Route().Path // the method is a label of metrics, whose values must not come from clients
			if i := slices.Index(fiber.DefaultMethods, c.Method()); i >= 0 {
				state.method = fiber.DefaultMethods[i]
			}
			state.release()
		}()
		if reason := ambiguity(&c.Request().Header); reason != "" {
			closeAfterReply(c.Context())
			return Message(c, fiber.StatusBadRequest, reason)
		}
		if c.Request().Header.ContentLength() > o.BodyLimit {
			return ErrBodyTooLarge
		}
		return c.Next()
	}
}

// finish returns a handler that sets the default headers of an answer and prepares the connection
// for the next request. The library would parse the unread part of a body as the next request, so
// finish discards the part if it has arrived, and otherwise closes the connection.
func (o Options) finish(handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(c *fasthttp.RequestCtx) {
		o.setDefaults(&c.Response.Header)
		size := c.Request.Header.ContentLength() // negative for a chunked body, or none
		link, _ := c.Conn().(*conn)
		if link != nil {
			link.endWaiting()
		}
		handler(c)
		if c.Request.IsBodyStream() && size != 0 && !(link != nil && size > 0 && link.arrived() && discard(c)) {
			closeAfterReply(c)
		}
		if link != nil {
			if link.listener.draining.Load() {
				c.SetConnectionClose()
			}
			link.servedCount++
			link.beginWaiting()
		}
	}
}

// setDefaults sets the default headers of an answer. Most answers contain data of an account, so
// answers are not cached unless their handler sets Cache-Control.
func (o Options) setDefaults(h *fasthttp.ResponseHeader) {
	h.Set(fiber.HeaderCacheControl, "no-store")
	h.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	if o.TLS {
		h.Set(fiber.HeaderStrictTransportSecurity, "max-age=31536000") // a year
	}
}

// closeAfterReply closes the connection after the client has had time to read the response.
func closeAfterReply(c *fasthttp.RequestCtx) {
	c.SetConnectionClose()
	if link, ok := c.Conn().(*conn); ok {
		link.unread.Store(true)
	}
}

// discard reads the rest of a body and reports whether it was read to its end.
func discard(c *fasthttp.RequestCtx) bool {
	_, err := io.Copy(io.Discard, c.Request.BodyStream())
	return err == nil
}

// errorHandler returns the handler of errors that no surface has answered.
func errorHandler(log *slog.Logger) fiber.ErrorHandler {
	return func(c *fiber.Ctx, err error) error {
		if e, ok := errors.AsType[*fiber.Error](err); ok {
			return Message(c, e.Code, e.Message)
		}
		if relay.KindOf(err) == relay.KindUnavailable || isContextError(err) {
			return Unavailable(c)
		}
		log.ErrorContext(c.UserContext(), "request failed", "path", c.Route().Path, "error", err)
		return answerInternalError(c)
	}
}

// isContextError reports whether err means that the context of a request has ended.
func isContextError(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// answerInternalError answers 500 with the request id, which is also in the log.
func answerInternalError(c *fiber.Ctx) error {
	id := RequestID(c.UserContext())
	return Message(c, fiber.StatusInternalServerError, "Internal error. Request "+id+".")
}

// Message answers {"message": …}.
func Message(c *fiber.Ctx, status int, message string) error {
	return c.Status(status).JSON(fiber.Map{"message": message})
}

// Retry-After in seconds and the message of answers with status 503.
const (
	retryAfter         = "5"
	unavailableMessage = "Service temporarily unavailable. Please try again later."
)

// Unavailable answers 503 with Retry-After. The request may have taken effect.
func Unavailable(c *fiber.Ctx) error {
	c.Set(fiber.HeaderRetryAfter, retryAfter)
	return Message(c, fiber.StatusServiceUnavailable, unavailableMessage)
}

// NotAccepted answers a post that the journal refused, and logs the error with the message. It
// answers 413 for ErrTooLarge, and otherwise 503, after which the sender repeats the post.
func NotAccepted(c *fiber.Ctx, log *slog.Logger, message string, err error) error {
	if errors.Is(err, journal.ErrTooLarge) {
		return ErrBodyTooLarge
	}
	log.ErrorContext(c.UserContext(), message, "account", AccountOf(c), "error", err) //nolint:sloglint // constants of the callers
	return Unavailable(c)
}

// NotFound answers 404. It is the handler of requests that match no route.
func NotFound(c *fiber.Ctx) error {
	return Message(c, fiber.StatusNotFound, "Not found.")
}
