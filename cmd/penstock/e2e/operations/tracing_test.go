package operations

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// spanCollector is a collector that stores the received spans.
type spanCollector struct {
	url   string
	mu    sync.Mutex
	spans []*trace.Span
}

func startCollector(t *testing.T) *spanCollector {
	t.Helper()
	c := new(spanCollector)
	c.url = e2e.NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Api-Key") != "collector-key" {
			t.Errorf("request for %s: error = %v, want traces with the key", r.URL.Path, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	return c
}

// lines returns the spans of a trace as "a > b > c", where a and b are ancestors of c. The name of a failed
// span ends with an exclamation mark.
func (c *spanCollector) lines(traceID string) (lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names, parents := map[string]string{}, map[string]string{}
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) != traceID {
			continue
		}
		id := hex.EncodeToString(s.SpanId)
		names[id], parents[id] = s.Name, hex.EncodeToString(s.ParentSpanId)
		if s.Status.GetCode() == trace.Status_STATUS_CODE_ERROR {
			names[id] += "!"
		}
	}
	for id, name := range names {
		for ancestor := parents[id]; names[ancestor] != ""; ancestor = parents[ancestor] {
			name = names[ancestor] + " > " + name
		}
		lines = append(lines, name)
	}
	slices.Sort(lines)
	return lines
}

// attribute returns an attribute of a span by name, or "" if no such span has it.
func (c *spanCollector) attribute(name, key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		for _, a := range s.Attributes {
			if s.Name == name && a.Key == key {
				return a.Value.GetStringValue()
			}
		}
	}
	return ""
}

const tracedInventory = `
sensor_types: [{id: temperature, name: Temperature}]
accounts:
  - name: acme
    credit: 100
    tokens: [{token: acme-all-0123456, scopes: [messaging, iot, webhook, carrier]}]
    locations: [{id: loc1, name: Default, imported: true}]
    decoders: [{id: d1, name: D, type: other, codec: json, sensors: [{sensor_type_id: temperature, key: temperature}]}]
    relays: {vmn: [{id: v1, number: "447860000001", action: http_get, parameters: ["SINK/sms?m=%msg"]}]}
    rules: [{id: all, name: All, on: reading, actions: [{action: http_post, parameters: ["SINK/rule"]}]}]
`

// TestTracesFollowTraffic checks the traces of a message whose first attempt fails, of a frame
// and of an order.
func TestTracesFollowTraffic(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	sink := e2e.NewSink(t, func(w http.ResponseWriter, req e2e.SinkRequest, earlier int) {
		if req.Path == "/sms" && earlier == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	g := e2e.Start(t, e2e.Embedded(), strings.ReplaceAll(tracedInventory, "SINK", sink.URL),
		"PENSTOCK_TRACING_URL="+c.url, "PENSTOCK_TRACING_HEADERS=api-key=collector-key", "PENSTOCK_DELIVERY_SCHEDULE=100ms,100ms")
	newTrace := func(n int) (id string, client e2e.Client) {
		id = strings.Repeat(fmt.Sprint(n), 32)
		return id, g.WithToken("acme-all-0123456").With("Traceparent", "00-"+id+"-00f067aa0ba902b7-01")
	}
	sms, client := newTrace(1)
	client.PostInboundText("m1", "447860000001", "hello")
	frame, client := newTrace(2)
	client.Post("/webhooks/generic?decoder_id=d1", `{"id":"shed","temperature":5}`).Mentions(t, 200, "temperature")
	order, client := newTrace(3)
	client.With("X-Auth-Token", "acme-all-0123456").With("Authorization", "").
		Post("/v2/sms/send", `{"destinations":["447700900123"],"message":"hi","dlr_url":"`+sink.URL+`/dlr?s=%code"}`).Mentions(t, 200, "447700900123")
	_, unsampled := newTrace(4)
	unsampled.With("Traceparent", "00-"+strings.Repeat("4", 32)+"-00f067aa0ba902b7-00").PostInboundText("m2", "447860000001", "unsampled")

	const smsSpan, frameSpan = "POST /inbound/sms/json", "POST /webhooks/generic"
	for _, tc := range []struct {
		name, id string
		want     []string
	}{
		{"the message", sms, []string{
			smsSpan, smsSpan + " > journal sms", smsSpan + " > journal sms > process sms",
			smsSpan + " > journal sms > process sms > deliver relay", smsSpan + " > journal sms > process sms > deliver relay!",
		}},
		{"the frame", frame, []string{frameSpan, frameSpan + " > journal uplink", frameSpan + " > journal uplink > process uplink", frameSpan + " > journal uplink > process uplink > deliver rule"}},
	} {
		relaytest.Eventually(t, tc.name+" has its spans", func() (any, bool) {
			got := c.lines(tc.id)
			return strings.Join(got, "\n"), slices.Equal(got, tc.want)
		})
	}
	relaytest.Eventually(t, "the order has its spans", func() (any, bool) {
		got := c.lines(order)
		return strings.Join(got, "\n"), slices.Contains(got, "POST /v2/sms/send > submit") && slices.Contains(got, "POST /v2/sms/send > deliver receipt")
	})
	if got := c.lines(strings.Repeat("4", 32)); len(got) > 0 {
		t.Errorf("spans of an unsampled trace = %q, want none", got)
	}
	if traceparent := sink.Requests("/rule")[0].Header.Get("Traceparent"); !strings.HasPrefix(traceparent, "00-"+frame+"-") {
		t.Errorf("traceparent at the endpoint = %q, want the trace %s", traceparent, frame)
	}
	for name, want := range map[string]string{"http.response.status_code": "200", "http.route": "/inbound/sms/json", "penstock.account": "1"} {
		if got := c.attribute(smsSpan, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	g.WithToken("").Get("/metrics").Mentions(t, 200, `penstock_spans_total{outcome="dropped"} 0`)
}
