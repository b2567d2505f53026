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

	"github.com/penstock/penstock/relay/tracing"
)

// receiver is a collector: it decodes what it is sent.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	answers  []int // to the next requests; 200 afterwards
	requests int
	spans    []*trace.Span
	header   http.Header
	resource string
}

func newReceiver(t *testing.T, answers ...int) *receiver {
	r := &receiver{answers: answers}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests++
		if len(r.answers) > 0 {
			status := r.answers[0]
			r.answers = r.answers[1:]
			w.WriteHeader(status)
			return
		}
		body, _ := io.ReadAll(req.Body)
		var all collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &all); err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s: %v", req.Method, req.URL, err)
		}
		r.header = req.Header
		for _, of := range all.ResourceSpans {
			for _, a := range of.Resource.Attributes {
				r.resource += a.Key + "=" + a.Value.GetStringValue() + "\n"
			}
			for _, scope := range of.ScopeSpans {
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
	o.Headers, o.About = map[string]string{"api-key": "collector-key"}, []tracing.Attribute{{Key: "service.name", Value: "penstock"}}
	e := New(o)
	tracer := tracing.New(1, e.Export)
	for range n {
		a := tracer.Receive("", "step \xff", time.Unix(1, 2))
		a.Set("key", "value")
		a.End(time.Unix(3, 4), "why")
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
	if len(r.spans) != 3 || r.header.Get("api-key") != "collector-key" || !strings.HasPrefix(r.resource, "service.name=penstock\n") {
		t.Fatalf("%d spans, %v, %s", len(r.spans), r.header, r.resource)
	}
	s := r.spans[0]
	if len(s.TraceId) != 16 || len(s.SpanId) != 8 || len(s.ParentSpanId) != 0 || s.Name != "step \uFFFD" || s.Kind != trace.Span_SPAN_KIND_SERVER ||
		s.StartTimeUnixNano != 1e9+2 || s.EndTimeUnixNano != 3e9+4 || s.Status.Code != trace.Status_STATUS_CODE_ERROR || s.Status.Message != "why" ||
		s.Attributes[0].Key != "key" || s.Attributes[0].Value.GetStringValue() != "value" {
		t.Errorf("%v", s)
	}
}

func TestWhatTheCollectorAnswersDecides(t *testing.T) {
	for name, tc := range map[string]struct {
		answers       []int
		sent, dropped uint64
		requests      int
	}{
		"taken":                         {nil, 1, 0, 1},
		"taken after it was overloaded": {[]int{429, 503, 502, 504}, 1, 0, 5},
		"overloaded for too long":       {[]int{503, 503, 503, 503, 503}, 0, 1, 5},
		"refused":                       {[]int{400}, 0, 1, 1},
		"an internal error":             {[]int{500}, 0, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, tc.answers...)
			sent, dropped := r.run(t, 1, Options{Every: time.Millisecond}).Stats()
			if sent != tc.sent || dropped != tc.dropped || r.requests != tc.requests {
				t.Errorf("%d sent, %d dropped, %d requests, want %+v", sent, dropped, r.requests, tc)
			}
		})
	}
}

func TestSpansBeyondTheQueueAreDropped(t *testing.T) {
	r := newReceiver(t)
	if sent, dropped := r.run(t, 10, Options{Queue: 4, Every: time.Millisecond}).Stats(); sent != 4 || dropped != 6 {
		t.Errorf("%d sent, %d dropped", sent, dropped)
	}
}

func TestTheLastSpansAreSent(t *testing.T) {
	r := newReceiver(t)
	e := New(Options{URL: r.URL, Every: time.Hour, Batch: 2})
	for range 5 {
		tracing.New(1, e.Export).Receive("", "step", time.Now()).End(time.Now(), "")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	e.Run(ctx)
	if sent, _ := e.Stats(); sent != 5 || len(r.spans) != 5 {
		t.Errorf("%d sent, %d taken", sent, len(r.spans))
	}
}
