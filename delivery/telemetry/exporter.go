// Package telemetry sends spans to an OpenTelemetry collector: OTLP over HTTP, in
// protobuf (https://opentelemetry.io/docs/specs/otlp/). It never holds traffic up:
// spans beyond what the collector takes are dropped and counted.
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
	// URL is the collector's, without the path /v1/traces.
	URL string
	// Headers are sent with every request, for example a key of the collector.
	Headers map[string]string
	// About says what sends the spans: service.name and so on.
	About []tracing.Attribute
	// Queue is the largest number of waiting spans, Batch that of a request; 0 means 8192 and
	// 512. Every is the time for which a span waits for others; 0 means 2 s.
	Queue, Batch int
	Every        time.Duration
	// Attempts is the number of requests before spans are dropped, with a pause that doubles
	// from FirstPause; 0 means 5 and 1 s.
	Attempts   int
	FirstPause time.Duration
	Logger     *slog.Logger // nil means slog.Default
}

// Exporter sends spans. Run has to be called.
type Exporter struct {
	o               Options
	spans           chan tracing.Span
	client          http.Client
	sent, discarded atomic.Uint64
}

// requestTimeout bounds a request to the collector.
const requestTimeout = 10 * time.Second

// New returns an exporter.
func New(o Options) *Exporter {
	o.Queue, o.Batch, o.Every = cmp.Or(o.Queue, 8192), cmp.Or(o.Batch, 512), cmp.Or(o.Every, 2*time.Second)
	o.Attempts, o.FirstPause = cmp.Or(o.Attempts, 5), cmp.Or(o.FirstPause, time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.URL = strings.TrimRight(o.URL, "/") + "/v1/traces"
	return &Exporter{o: o, spans: make(chan tracing.Span, o.Queue), client: http.Client{Timeout: requestTimeout}}
}

// Export queues a span, or drops it if too many wait. It does not block.
func (e *Exporter) Export(s tracing.Span) {
	select {
	case e.spans <- s:
	default:
		e.discarded.Add(1)
	}
}

// Stats returns how many spans the collector took, and how many were dropped.
func (e *Exporter) Stats() (sent, dropped uint64) { return e.sent.Load(), e.discarded.Load() }

// Run sends spans until ctx is done, and then what is queued, until the collector does not
// take it.
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
	for taken := true; taken && len(e.spans) > 0; { // what is queued
		batch = batch[:0]
		for len(batch) < e.o.Batch && len(e.spans) > 0 {
			batch = append(batch, <-e.spans)
		}
		taken = e.send(ctx, batch)
	}
}

// send sends a batch and reports whether the collector took it; else it is dropped.
func (e *Exporter) send(ctx context.Context, batch []tracing.Span) bool {
	if len(batch) == 0 {
		return true
	}
	body, err := encode(e.o.About, batch)
	if err == nil {
		err = e.post(ctx, body)
	}
	if err != nil {
		e.discarded.Add(uint64(len(batch)))
		e.o.Logger.Warn("spans dropped: the collector did not take them", "count", len(batch), "error", err)
		return false
	}
	e.sent.Add(uint64(len(batch)))
	return true
}

// post makes the request, again if the collector requests it or cannot be reached. The last
// spans are sent although ctx is done, once.
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

// try makes the request once; again reports that it may be repeated, after wait.
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
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	switch resp.StatusCode {
	case http.StatusOK:
		return false, 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		retry = true
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return retry, min(time.Duration(seconds)*time.Second, time.Minute), fmt.Errorf("%s: %q", resp.Status, answer)
}

// encode returns an ExportTraceServiceRequest.
func encode(process []tracing.Attribute, spans []tracing.Span) ([]byte, error) {
	encoded := make([]*trace.Span, len(spans))
	for i, s := range spans {
		encoded[i] = &trace.Span{
			TraceId: id(s.TraceID), SpanId: id(s.SpanID), ParentSpanId: id(s.ParentID), Flags: 1,
			Name: valid(s.Name), Kind: trace.Span_SpanKind(s.Kind), Attributes: attributes(s.Attributes),
			StartTimeUnixNano: uint64(s.Start.UnixNano()), EndTimeUnixNano: uint64(s.End.UnixNano()),
		}
		if s.Failed != "" {
			encoded[i].Status = &trace.Status{Code: trace.Status_STATUS_CODE_ERROR, Message: valid(s.Failed)}
		}
	}
	return proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: attributes(process)},
		ScopeSpans: []*trace.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "penstock"}, Spans: encoded}},
	}}})
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
