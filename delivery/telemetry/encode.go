package telemetry

import (
	"encoding/hex"
	"strings"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/penstock/penstock/relay/tracing"
)

// encode returns an ExportTraceServiceRequest.
func encode(about []tracing.Attribute, spans []tracing.Span) ([]byte, error) {
	all := make([]*trace.Span, len(spans))
	for i := range spans {
		all[i] = spanOf(&spans[i])
	}
	return proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: attributes(about)},
		ScopeSpans: []*trace.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "penstock"}, Spans: all}},
	}}})
}

func spanOf(s *tracing.Span) *trace.Span {
	out := &trace.Span{
		TraceId: id(s.TraceID), SpanId: id(s.SpanID), ParentSpanId: id(s.ParentID), Flags: 1,
		Name: valid(s.Name), Kind: trace.Span_SpanKind(s.Kind), Attributes: attributes(s.Attributes),
		StartTimeUnixNano: uint64(s.Start.UnixNano()), EndTimeUnixNano: uint64(s.End.UnixNano()),
	}
	if s.Failed != "" {
		out.Status = &trace.Status{Code: trace.Status_STATUS_CODE_ERROR, Message: valid(s.Failed)}
	}
	return out
}

func id(digits string) []byte {
	b, _ := hex.DecodeString(digits) // tracing makes and checks them
	return b
}

func attributes(all []tracing.Attribute) []*common.KeyValue {
	out := make([]*common.KeyValue, len(all))
	for i, a := range all {
		out[i] = &common.KeyValue{Key: a.Key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: valid(a.Value)}}}
	}
	return out
}

// valid makes a text fit for protobuf, which refuses invalid UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
