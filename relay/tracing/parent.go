package tracing

import (
	"context"
	"encoding/hex"
	"strings"
)

// Parent names a span that is kept: version 00 of W3C's traceparent. Empty: none.
type Parent string

// Header is the name of the header that carries a Parent.
const Header = "traceparent"

// The parts of a traceparent: 00-<32 digits>-<16 digits>-<2 digits>.
const (
	traceAt, spanAt, flagsAt, length = 3, 36, 53, 55
	flagSampled                      = 1
)

// parse reads a traceparent of a client; sampled reports whether the client keeps the trace.
// Later versions may be longer.
func parse(header string) (traceID, spanID string, sampled, ok bool) {
	if len(header) < length || len(header) > length && (header[:2] == "00" || header[length] != '-') || strings.HasPrefix(header, "ff") {
		return "", "", false, false
	}
	version, traceID, spanID, flags := header[:2], header[traceAt:spanAt-1], header[spanAt:flagsAt-1], header[flagsAt:length]
	if header[2] != '-' || header[spanAt-1] != '-' || header[flagsAt-1] != '-' {
		return "", "", false, false
	}
	for _, digits := range [...]string{version, traceID, spanID, flags} {
		if strings.Trim(digits, "0123456789abcdef") != "" {
			return "", "", false, false
		}
	}
	if strings.Trim(traceID, "0") == "" || strings.Trim(spanID, "0") == "" {
		return "", "", false, false
	}
	b, _ := hex.DecodeString(flags)
	return traceID, spanID, b[0]&flagSampled != 0, true
}

// parentKey is the key of a Parent in a context.
type parentKey struct{}

// NewContext returns a context whose work is below a span.
func NewContext(ctx context.Context, p Parent) context.Context {
	if p == "" {
		return ctx
	}
	return context.WithValue(ctx, parentKey{}, p)
}

// FromContext returns the span that the work of a context is below; empty for none.
func FromContext(ctx context.Context) Parent {
	p, _ := ctx.Value(parentKey{}).(Parent)
	return p
}
