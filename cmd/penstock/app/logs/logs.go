// Package logs provides the log of the program: text or JSON, with a level that may change while the
// program runs, and with attributes from the context. A repeated warning or error is written at most
// once per Window, with the number of suppressed lines.
package logs

import (
	"context"
	"hash/maphash"
	"io"
	"log/slog"
	"strconv"
	"strings"
)

// Options configures a log; the zero value writes text from level Info.
type Options struct {
	Level slog.Leveler // nil means Info
	JSON  bool
	// Context returns the attributes that a context adds to a line; nil adds none.
	Context func(ctx context.Context) []slog.Attr
}

// Handler is a slog.Handler. It is safe for concurrent use.
type Handler struct {
	nextHandler slog.Handler
	context     func(ctx context.Context) []slog.Attr
	repeats     *repeats
	boundText   string // identity of the attributes and groups that WithAttrs and WithGroup added
}

// New returns a handler that writes to w. Close writes the suppressed lines.
func New(w io.Writer, o Options) *Handler {
	options := &slog.HandlerOptions{Level: o.Level}
	var nextHandler slog.Handler = slog.NewTextHandler(w, options)
	if o.JSON {
		nextHandler = slog.NewJSONHandler(w, options)
	}
	return &Handler{nextHandler: nextHandler, context: o.Context, repeats: newRepeats()}
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.nextHandler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	derived.nextHandler = h.nextHandler.WithAttrs(attrs)
	var b strings.Builder
	b.WriteString(h.boundText)
	for _, a := range attrs {
		writeIdentity(&b, a)
	}
	derived.boundText = b.String()
	return &derived
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	derived := *h
	derived.nextHandler = h.nextHandler.WithGroup(name)
	derived.boundText += name + "\x01"
	return &derived
}

// Handle implements slog.Handler. Lines below Warn are never suppressed.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if h.context != nil {
		if attrs := h.context(ctx); len(attrs) > 0 {
			r = r.Clone()
			r.AddAttrs(attrs...)
		}
	}
	if r.Level >= slog.LevelWarn && h.repeats.suppress(h.identity(&r), h.nextHandler, r) {
		return nil
	}
	return h.nextHandler.Handle(ctx, r)
}

// Close writes the last suppressed line of each fault, with the number of lines. The handler can
// still be used.
func (h *Handler) Close() { h.repeats.flush() }

// identity returns a hash of the level, the message and the attributes, except attributes that differ
// in each line. Lines about the same fault have the same hash.
func (h *Handler) identity(r *slog.Record) uint64 {
	var b strings.Builder
	b.WriteString(r.Level.String() + "\x00" + r.Message + "\x00" + h.boundText)
	r.Attrs(func(a slog.Attr) bool {
		writeIdentity(&b, a)
		return true
	})
	return maphash.String(h.repeats.seed, b.String())
}

// writeIdentity writes an attribute for identity to hash. It ignores numbers in the text
// of an error, because they may be ports or counters.
func writeIdentity(b *strings.Builder, a slog.Attr) {
	switch a.Key {
	case "request_id", "count", "refused", "again_in", "stack", "waited":
		return
	}
	text := a.Value.Resolve().String()
	if a.Key == "error" {
		text = replaceNumbers(text)
	}
	b.WriteString(a.Key + "\x00" + strconv.Quote(text))
}

// replaceNumbers replaces each number with #.
func replaceNumbers(s string) string {
	var b strings.Builder
	digits := false
	for _, r := range s {
		if r >= '0' && r <= '9' {
			if !digits {
				b.WriteByte('#')
			}
			digits = true
			continue
		}
		digits = false
		b.WriteRune(r)
	}
	return b.String()
}
