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

// Kind is the kind of a span, with the numbers of OTLP.
type Kind int32

// The kinds.
const (
	Internal Kind = iota + 1
	Server
	Client
	Producer
	Consumer
)

// Span is a finished step.
type Span struct {
	TraceID, SpanID, ParentID string // lower-case hex; ParentID may be empty
	Name                      string
	Kind                      Kind
	Start, End                time.Time
	Attributes                []Attribute
	// Failed is the reason why the step failed; empty if it did not.
	Failed string
}

// Attribute is a property of a span.
type Attribute struct{ Key, Value string }

// Tracer begins spans and exports them when they end. A nil Tracer begins none.
type Tracer struct {
	limit  uint64 // a trace is sampled if the last 8 bytes of its id are at most limit
	export func(Span)
}

// New returns a tracer that samples a share of the traces, 0 to 1. export must not block.
func New(share float64, export func(Span)) *Tracer {
	t := &Tracer{limit: math.MaxUint64, export: export}
	if share < 1 {
		t.limit = uint64(share * math.MaxUint64)
	}
	return t
}

// Active is an unfinished span. The methods of a nil Active do nothing.
type Active struct {
	tracer *Tracer
	span   Span
}

// Receive begins the span of a request. header is the traceparent of the client; an invalid header
// is ignored. Receive returns nil if the trace is not sampled. A client can exclude its traces from
// sampling, but cannot exceed the share.
func (t *Tracer) Receive(header, name string, start time.Time) *Active {
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
	if lowHalf, _ := hex.DecodeString(traceID[16:]); binary.BigEndian.Uint64(lowHalf) > t.limit {
		return nil
	}
	return t.begin(strings.Clone(traceID), strings.Clone(parentID), name, Server, start)
}

// Continue begins a child span of p. It returns nil if p is empty.
func (t *Tracer) Continue(p Parent, name string, kind Kind, start time.Time) *Active {
	if t == nil || p == "" {
		return nil
	}
	traceID, parentID, _, ok := parse(string(p))
	if !ok {
		return nil
	}
	return t.begin(traceID, parentID, name, kind, start)
}

func (t *Tracer) begin(traceID, parentID, name string, kind Kind, start time.Time) *Active {
	return &Active{t, Span{TraceID: traceID, SpanID: newID(8), ParentID: parentID, Name: name, Kind: kind, Start: start}}
}

func newID(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Parent returns the Parent of the span's children; empty if a is nil.
func (a *Active) Parent() Parent {
	if a == nil {
		return ""
	}
	return Parent("00-" + a.span.TraceID + "-" + a.span.SpanID + "-01")
}

// Name renames the span.
func (a *Active) Name(name string) {
	if a != nil {
		a.span.Name = name
	}
}

// Set adds an attribute, unless the value is empty.
func (a *Active) Set(key, value string) {
	if a != nil && value != "" {
		a.span.Attributes = append(a.span.Attributes, Attribute{key, value})
	}
}

// End ends and exports the span. failed is the reason why the step failed; empty if it did not.
func (a *Active) End(t time.Time, failed string) {
	if a != nil {
		a.span.End, a.span.Failed = t, failed
		a.tracer.export(a.span)
	}
}

// Parent names a sampled span: a traceparent of W3C Trace Context, version 00. Empty means none.
type Parent string

// Header is the name of the header that carries a Parent.
const Header = "traceparent"

// The offsets in a traceparent: 00-<32 digits>-<16 digits>-<2 digits>.
const (
	traceStart, spanStart, flagsStart, length = 3, 36, 53, 55
	flagSampled                               = 1
)

// parse parses a traceparent. sampled is its sampled flag. Later versions may be longer.
func parse(header string) (traceID, spanID string, sampled, ok bool) {
	if len(header) < length || len(header) > length && (header[:2] == "00" || header[length] != '-') || strings.HasPrefix(header, "ff") {
		return "", "", false, false
	}
	version, traceID, spanID, flags := header[:2], header[traceStart:spanStart-1], header[spanStart:flagsStart-1], header[flagsStart:length]
	if header[2] != '-' || header[spanStart-1] != '-' || header[flagsStart-1] != '-' {
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

// NewContext returns a context with the parent of later spans.
func NewContext(ctx context.Context, p Parent) context.Context {
	if p == "" {
		return ctx
	}
	return context.WithValue(ctx, parentKey{}, p)
}

// FromContext returns the parent of a context; empty if it has none.
func FromContext(ctx context.Context) Parent {
	p, _ := ctx.Value(parentKey{}).(Parent)
	return p
}
