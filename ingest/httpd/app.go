package httpd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/penstock/penstock/relay"
)

// Options are what may be chosen; the zero value works.
type Options struct {
	BodyLimit    int           // bytes of any body; surfaces allow less; 0 means 8 MiB
	ReadTimeout  time.Duration // for a whole request; 0 means 30 s
	WriteTimeout time.Duration // 0 means 60 s
	IdleTimeout  time.Duration // between requests of a connection; 0 means 2 min
	Logger       *slog.Logger
	// Seed begins every request id; it should differ between starts.
	Seed string
}

// App is what the surfaces mount on and the program serves.
type App = fiber.App

// New returns the app with what every request passes through. Routes are added
// by the surfaces; NotFound comes last.
func New(o Options) *App {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	app := fiber.New(fiber.Config{
		AppName:               "penstock",
		DisableStartupMessage: true,
		BodyLimit:             cmp.Or(o.BodyLimit, 8<<20),
		ReadTimeout:           cmp.Or(o.ReadTimeout, 30*time.Second),
		WriteTimeout:          cmp.Or(o.WriteTimeout, 60*time.Second),
		IdleTimeout:           cmp.Or(o.IdleTimeout, 2*time.Minute),
		ReadBufferSize:        16 << 10,
		JSONEncoder:           encode,
		ErrorHandler:          errorHandler(o.Logger),
	})
	app.Use(guard(o))
	return app
}

// encode writes answers as people and tests read them: & and < as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// guard gives every request an id, refuses what two parsers could read in two
// ways, and turns a panic into a 500.
func guard(o Options) fiber.Handler {
	var count atomic.Uint64
	return func(c *fiber.Ctx) (err error) {
		id := o.Seed + strconv.FormatUint(count.Add(1), 36)
		c.Set("X-Request-Id", id)
		defer func() {
			if p := recover(); p != nil {
				o.Logger.Error("request panicked", "request_id", id, "panic", p, "path", c.Route().Path, "stack", string(debug.Stack()))
				err = internal(c)
			}
		}()
		if twoLengths(&c.Request().Header) {
			c.Context().SetConnectionClose()
			return Message(c, fiber.StatusBadRequest, "Content-Length and Transfer-Encoding exclude each other.")
		}
		return c.Next()
	}
}

// twoLengths reports a chunked request that also names a Content-Length, which
// fasthttp has dropped from its parsed headers.
func twoLengths(h *fasthttp.RequestHeader) bool {
	if len(h.Peek(fiber.HeaderTransferEncoding)) == 0 {
		return false
	}
	for line := range bytes.Lines(h.RawHeaders()) {
		if name, _, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte(fiber.HeaderContentLength)) {
			return true
		}
	}
	return false
}

// errorHandler answers errors that no surface has turned into an answer.
func errorHandler(log *slog.Logger) fiber.ErrorHandler {
	return func(c *fiber.Ctx, err error) error {
		if e, ok := errors.AsType[*fiber.Error](err); ok {
			return Message(c, e.Code, e.Message)
		}
		if relay.KindOf(err) == relay.KindUnavailable {
			return Unavailable(c)
		}
		id := string(c.Response().Header.Peek("X-Request-Id"))
		log.Error("request failed", "request_id", id, "path", c.Route().Path, "error", err)
		return internal(c)
	}
}

// internal answers for what is nobody's business but ours; the id leads to it in
// the log.
func internal(c *fiber.Ctx) error {
	id := string(c.Response().Header.Peek("X-Request-Id"))
	return Message(c, fiber.StatusInternalServerError, "Internal error. Request "+id+".")
}

// Message answers {"message": …}.
func Message(c *fiber.Ctx, status int, message string) error {
	return c.Status(status).JSON(fiber.Map{"message": message})
}

// Unavailable answers 503 and asks the sender to come again soon: nothing was
// accepted.
func Unavailable(c *fiber.Ctx) error {
	c.Set(fiber.HeaderRetryAfter, "5")
	return Message(c, fiber.StatusServiceUnavailable, "Service temporarily unavailable. Please try again later.")
}

// NotFound answers requests that no route matched.
func NotFound(c *fiber.Ctx) error {
	return Message(c, fiber.StatusNotFound, "Not found.")
}
