// Package telemetry sends spans to an OpenTelemetry collector with OTLP over HTTP, in protobuf
// (https://opentelemetry.io/docs/specs/otlp/). It never delays traffic: it drops and counts
// spans that the collector does not accept in time.
package telemetry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/penstock/penstock/relay/tracing"
)

// Options configures an Exporter; URL is required.
type Options struct {
	// URL is the URL of the collector, without the path /v1/traces.
	URL string
	// Headers are sent with every request, for example an API key.
	Headers map[string]string
	// Resource describes the sender of the spans: service.name and so on.
	Resource []tracing.Attribute
	// Queue is the largest number of waiting spans; 0 means 8192. Batch is the largest number of
	// spans in a request; 0 means 512. Every is the time for which a span waits for others; 0
	// means 2 s.
	Queue, Batch int
	Every        time.Duration
	// Attempts is the number of requests before spans are dropped; 0 means 5. FirstPause is the
	// first pause between requests, which doubles; 0 means 1 s.
	Attempts   int
	FirstPause time.Duration
	Logger     *slog.Logger // nil means slog.Default
}

// Exporter sends spans while Run runs.
type Exporter struct {
	o             Options
	spans         chan tracing.Span
	client        http.Client
	sent, dropped atomic.Uint64
}

const requestTimeout = 10 * time.Second

// New returns an exporter.
func New(o Options) *Exporter {
	o.Queue, o.Batch, o.Every = cmp.Or(o.Queue, 8192), cmp.Or(o.Batch, 512), cmp.Or(o.Every, 2*time.Second)
	o.Attempts, o.FirstPause = cmp.Or(o.Attempts, 5), cmp.Or(o.FirstPause, time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.URL = strings.TrimRight(o.URL, "/") + "/v1/traces"
	return &Exporter{o: o, spans: make(chan tracing.Span, o.Queue), client: http.Client{Timeout: requestTimeout}}
}

// Export queues a span, or drops it if the queue is full. It does not block.
func (e *Exporter) Export(s tracing.Span) {
	select {
	case e.spans <- s:
	default:
		e.dropped.Add(1)
	}
}

// Stats returns the numbers of spans that the collector has accepted, and that were dropped.
func (e *Exporter) Stats() (sent, dropped uint64) { return e.sent.Load(), e.dropped.Load() }

// Run sends spans until ctx is done, and then the queued spans until the collector does not accept
// one of their batches.
func (e *Exporter) Run(ctx context.Context) {
	tick := time.NewTicker(e.o.Every)
	defer tick.Stop()
	batch := make([]tracing.Span, 0, e.o.Batch)
	for ctx.Err() == nil {
		select {
		case s := <-e.spans:
			if batch = append(batch, s); len(batch) < e.o.Batch {
				continue
			}
		case <-tick.C:
		case <-ctx.Done():
		}
		e.send(ctx, batch)
		batch = batch[:0]
	}
	for accepted := true; accepted && len(e.spans) > 0; {
		batch = batch[:0]
		for len(batch) < e.o.Batch && len(e.spans) > 0 {
			batch = append(batch, <-e.spans)
		}
		accepted = e.send(ctx, batch)
	}
}

// send sends a batch and reports whether the collector accepted it. It drops a batch that the
// collector does not accept.
func (e *Exporter) send(ctx context.Context, batch []tracing.Span) bool {
	if len(batch) == 0 {
		return true
	}
	body, err := encode(e.o.Resource, batch)
	if err == nil {
		err = e.post(ctx, body)
	}
	if err != nil {
		e.dropped.Add(uint64(len(batch)))
		e.o.Logger.Warn("spans dropped: the collector did not accept them", "count", len(batch), "error", err)
		return false
	}
	e.sent.Add(uint64(len(batch)))
	return true
}

// post sends a request, at most Attempts times while the error is temporary and ctx is not done.
func (e *Exporter) post(ctx context.Context, body []byte) error {
	pause := e.o.FirstPause
	for attempt := 1; ; attempt++ {
		retry, wait, err := e.try(context.WithoutCancel(ctx), body)
		if err == nil || !retry || attempt >= e.o.Attempts || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(max(pause, wait)):
		case <-ctx.Done():
		}
		pause *= 2
	}
}

// try makes a request. retry means that it may be repeated after wait.
func (e *Exporter) try(ctx context.Context, body []byte) (retry bool, wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.o.URL, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	for name, value := range e.o.Headers {
		req.Header.Set(name, value)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return true, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	excerpt, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	switch resp.StatusCode {
	case http.StatusOK:
		return false, 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		retry = true
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return retry, min(time.Duration(seconds)*time.Second, time.Minute), fmt.Errorf("%s: %q", resp.Status, excerpt)
}

// encode returns an ExportTraceServiceRequest.
func encode(sender []tracing.Attribute, spans []tracing.Span) ([]byte, error) {
	encoded := make([]*trace.Span, len(spans))
	for i, s := range spans {
		encoded[i] = &trace.Span{
			TraceId: idBytes(s.TraceID), SpanId: idBytes(s.SpanID), ParentSpanId: idBytes(s.ParentID), Flags: 1,
			Name: validUTF8(s.Name), Kind: trace.Span_SpanKind(s.Kind), Attributes: attributes(s.Attributes),
			StartTimeUnixNano: uint64(s.Start.UnixNano()), EndTimeUnixNano: uint64(s.End.UnixNano()),
		}
		if s.Failed != "" {
			encoded[i].Status = &trace.Status{Code: trace.Status_STATUS_CODE_ERROR, Message: validUTF8(s.Failed)}
		}
	}
	return proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: attributes(sender)},
		ScopeSpans: []*trace.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "penstock"}, Spans: encoded}},
	}}})
}

func idBytes(digits string) []byte {
	b, _ := hex.DecodeString(digits) // package tracing makes or checks ids
	return b
}

func attributes(list []tracing.Attribute) []*common.KeyValue {
	encoded := make([]*common.KeyValue, len(list))
	for i, a := range list {
		encoded[i] = &common.KeyValue{Key: a.Key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: validUTF8(a.Value)}}}
	}
	return encoded
}

// validUTF8 replaces invalid UTF-8, which protobuf refuses.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
