package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/tracing"
)

// receiver is a collector that decodes and stores spans.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	statuses []int // status codes of the next responses; 200 afterwards
	requests int
	spans    []*trace.Span
	header   http.Header
	resource string
}

func newReceiver(t *testing.T, statuses ...int) *receiver {
	r := &receiver{statuses: statuses}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests++
		if len(r.statuses) > 0 {
			status := r.statuses[0]
			r.statuses = r.statuses[1:]
			w.WriteHeader(status)
			return
		}
		body, _ := io.ReadAll(req.Body)
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s, Content-Type %q: error = %v, want an OTLP request", req.Method, req.URL, req.Header.Get("Content-Type"), err)
		}
		r.header = req.Header
		for _, spans := range request.ResourceSpans {
			for _, a := range spans.Resource.Attributes {
				r.resource += a.Key + "=" + a.Value.GetStringValue() + "\n"
			}
			for _, scope := range spans.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// run sends n spans and waits until the exporter has ended.
func (r *receiver) run(t *testing.T, n int, o Options) *Exporter {
	t.Helper()
	o.URL, o.Logger, o.FirstPause = r.URL+"/", slog.New(slog.DiscardHandler), time.Millisecond
	o.Headers, o.Resource = map[string]string{"api-key": "collector-key"}, []tracing.Attribute{{Key: "service.name", Value: "penstock"}}
	e := New(o)
	tracer := tracing.New(1, e.Export)
	for range n {
		a := tracer.Receive("", "step \xff", time.Unix(1, 2))
		a.Set("key", "value")
		a.End(time.Unix(3, 4), "failed")
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); e.Run(ctx) }()
	for sent, dropped := e.Stats(); sent+dropped < uint64(n); sent, dropped = e.Stats() {
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("spans are neither sent nor dropped")
		}
	}
	stop()
	<-ended
	return e
}

func TestSpansReachTheCollector(t *testing.T) {
	r := newReceiver(t)
	r.run(t, 3, Options{Batch: 2, Every: time.Millisecond})
	relaytest.Equal(t, "the header api-key", r.header.Get("api-key"), "collector-key")
	if !strings.HasPrefix(r.resource, "service.name=penstock\n") {
		t.Errorf("resource = %q, want the service name first", r.resource)
	}
	if len(r.spans) != 3 {
		t.Fatalf("%d spans arrived, want 3", len(r.spans))
	}
	relaytest.Equal(t, "the first span", contentOf(r.spans[0]), content{
		TraceID: 16, SpanID: 8, Name: "step \uFFFD", Kind: trace.Span_SPAN_KIND_SERVER, Start: 1e9 + 2, End: 3e9 + 4,
		Code: trace.Status_STATUS_CODE_ERROR, Message: "failed", Attributes: []string{"key=value"},
	})
}

// content has the fields of a span, with the lengths of its ids instead of the ids.
type content struct {
	TraceID, SpanID, Parent int
	Name                    string
	Kind                    trace.Span_SpanKind
	Start, End              uint64
	Code                    trace.Status_StatusCode
	Message                 string
	Attributes              []string
}

func contentOf(s *trace.Span) content {
	c := content{
		len(s.TraceId), len(s.SpanId), len(s.ParentSpanId), s.Name, s.Kind, s.StartTimeUnixNano, s.EndTimeUnixNano,
		s.Status.GetCode(), s.Status.GetMessage(), nil,
	}
	for _, a := range s.Attributes {
		c.Attributes = append(c.Attributes, a.Key+"="+a.Value.GetStringValue())
	}
	return c
}

// expectStats compares the numbers of sent and dropped spans of an exporter.
func expectStats(t *testing.T, e *Exporter, sent, dropped uint64) {
	t.Helper()
	gotSent, gotDropped := e.Stats()
	relaytest.Equal(t, "sent and dropped spans", [2]uint64{gotSent, gotDropped}, [2]uint64{sent, dropped})
}

func TestSpansAreSentAgainAfterTemporaryErrorsOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		statuses      []int
		sent, dropped uint64
		requests      int
	}{
		"accepted":                   {nil, 1, 0, 1},
		"accepted after an overload": {[]int{429, 503, 502, 504}, 1, 0, 5},
		"overloaded for too long":    {[]int{503, 503, 503, 503, 503}, 0, 1, 5},
		"refused":                    {[]int{400}, 0, 1, 1},
		"an internal error":          {[]int{500}, 0, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, tc.statuses...)
			expectStats(t, r.run(t, 1, Options{Every: time.Millisecond}), tc.sent, tc.dropped)
			relaytest.Equal(t, "the number of requests", r.requests, tc.requests)
		})
	}
}

func TestSpansBeyondTheQueueAreDropped(t *testing.T) {
	r := newReceiver(t)
	expectStats(t, r.run(t, 10, Options{Queue: 4, Every: time.Millisecond}), 4, 6)
}

func TestWaitingSpansAreSentWhenRunEnds(t *testing.T) {
	r := newReceiver(t)
	e := New(Options{URL: r.URL, Every: time.Hour, Batch: 2})
	for range 5 {
		tracing.New(1, e.Export).Receive("", "step", time.Now()).End(time.Now(), "")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	e.Run(ctx)
	expectStats(t, e, 5, 0)
	relaytest.Equal(t, "the number of received spans", len(r.spans), 5)
}
