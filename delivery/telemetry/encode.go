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
func encode(process []tracing.Attribute, spans []tracing.Span) ([]byte, error) {
	encoded := make([]*trace.Span, len(spans))
	for i := range spans {
		encoded[i] = spanOf(&spans[i])
	}
	return proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: attributes(process)},
		ScopeSpans: []*trace.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "penstock"}, Spans: encoded}},
	}}})
}

func spanOf(s *tracing.Span) *trace.Span {
	encoded := &trace.Span{
		TraceId: id(s.TraceID), SpanId: id(s.SpanID), ParentSpanId: id(s.ParentID), Flags: 1,
		Name: valid(s.Name), Kind: trace.Span_SpanKind(s.Kind), Attributes: attributes(s.Attributes),
		StartTimeUnixNano: uint64(s.Start.UnixNano()), EndTimeUnixNano: uint64(s.End.UnixNano()),
	}
	if s.Failed != "" {
		encoded.Status = &trace.Status{Code: trace.Status_STATUS_CODE_ERROR, Message: valid(s.Failed)}
	}
	return encoded
}

func id(digits string) []byte {
	b, _ := hex.DecodeString(digits) // tracing makes and checks them
	return b
}

func attributes(list []tracing.Attribute) []*common.KeyValue {
	encoded := make([]*common.KeyValue, len(list))
	for i, a := range list {
		encoded[i] = &common.KeyValue{Key: a.Key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: valid(a.Value)}}}
	}
	return encoded
}

// valid makes a text fit for protobuf, which refuses invalid UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
