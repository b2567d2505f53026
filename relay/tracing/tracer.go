package tracing

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"time"
)

// Kind is the role of a span, as OTLP numbers it.
type Kind int32

// The kinds.
const (
	Internal Kind = iota + 1
	Server
	Client
	Producer
	Consumer
)

// Span is a step that was made.
type Span struct {
	TraceID, SpanID, ParentID string // lower-case hex; the parent's may be empty
	Name                      string
	Kind                      Kind
	Start, End                time.Time
	Attributes                []Attribute
	// Failed is the reason why the step failed; empty if it did not.
	Failed string
}

// Attribute is a property of a span.
type Attribute struct{ Key, Value string }

// Tracer begins spans and passes on those that ended. A nil Tracer begins none.
type Tracer struct {
	keep   uint64 // traces whose id ends in less are kept
	export func(Span)
}

// New returns a tracer that keeps a share of the traces, 0 to 1. export must not block.
func New(share float64, export func(Span)) *Tracer {
	t := &Tracer{keep: math.MaxUint64, export: export}
	if share < 1 {
		t.keep = uint64(share * math.MaxUint64)
	}
	return t
}

// Active is a span that has not ended. The methods of a nil Active do nothing.
type Active struct {
	tracer *Tracer
	span   Span
}

// Receive begins the span of a request with the traceparent of its client, which is
// ignored unless it is valid. It returns nil if the trace is not kept. A client may
// have its trace left out, but not have more kept than the share.
func (t *Tracer) Receive(header, name string, at time.Time) *Active {
	if t == nil {
		return nil
	}
	traceID, parentID, sampled, ok := parse(header)
	if ok && !sampled {
		return nil
	}
	if !ok {
		traceID = newID(16)
	}
	if lowHalf, _ := hex.DecodeString(traceID[16:]); binary.BigEndian.Uint64(lowHalf) > t.keep {
		return nil
	}
	return t.begin(strings.Clone(traceID), strings.Clone(parentID), name, Server, at)
}

// Continue begins a span below another one. It returns nil if that is empty.
func (t *Tracer) Continue(p Parent, name string, kind Kind, at time.Time) *Active {
	if t == nil || p == "" {
		return nil
	}
	traceID, parentID, _, ok := parse(string(p))
	if !ok {
		return nil
	}
	return t.begin(traceID, parentID, name, kind, at)
}

func (t *Tracer) begin(traceID, parentID, name string, kind Kind, at time.Time) *Active {
	return &Active{t, Span{TraceID: traceID, SpanID: newID(8), ParentID: parentID, Name: name, Kind: kind, Start: at}}
}

func newID(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Parent names the span, for those below it; empty for nil.
func (a *Active) Parent() Parent {
	if a == nil {
		return ""
	}
	return Parent("00-" + a.span.TraceID + "-" + a.span.SpanID + "-01")
}

// Name gives the span another name.
func (a *Active) Name(name string) {
	if a != nil {
		a.span.Name = name
	}
}

// Set adds an attribute; an empty value adds none.
func (a *Active) Set(key, value string) {
	if a != nil && value != "" {
		a.span.Attributes = append(a.span.Attributes, Attribute{key, value})
	}
}

// End ends the span and passes it on. failed is the reason why the step failed, empty if it
// did not.
func (a *Active) End(t time.Time, failed string) {
	if a != nil {
		a.span.End, a.span.Failed = t, failed
		a.tracer.export(a.span)
	}
}

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
