package tracing

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
)

func TestOnlyValidParentsAreContinued(t *testing.T) {
	for name, tc := range map[string]struct {
		header             string
		sampled, continued bool
	}{
		"a sampled parent":             {"00-" + traceID + "-" + spanID + "-01", true, true},
		"a parent that is not sampled": {"00-" + traceID + "-" + spanID + "-00", false, false},
		"other flags":                  {"00-" + traceID + "-" + spanID + "-03", true, true},
		"a longer later version":       {"01-" + traceID + "-" + spanID + "-01-more", true, true},
		"a longer version 00":          {"00-" + traceID + "-" + spanID + "-01-more", true, false},
		"the invalid version ff":       {"ff-" + traceID + "-" + spanID + "-01", true, false},
		"upper case":                   {"00-" + strings.ToUpper(traceID) + "-" + spanID + "-01", true, false},
		"a trace of zeros":             {"00-" + strings.Repeat("0", 32) + "-" + spanID + "-01", true, false},
		"a span of zeros":              {"00-" + traceID + "-" + strings.Repeat("0", 16) + "-01", true, false},
		"an invalid separator":         {"00_" + traceID + "-" + spanID + "-01", true, false},
		"no header":                    {"", true, false},
		"a header that is too short":   {"00-" + traceID, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Span
			tracer := New(1, func(s Span) { got = append(got, s) })
			tracer.Receive(tc.header, "request", time.Now()).End(time.Now(), "")
			if len(got) > 0 != tc.sampled {
				t.Fatalf("%d spans, want sampled %t", len(got), tc.sampled)
			}
			if tc.sampled && (got[0].TraceID == traceID && got[0].ParentID == spanID) != tc.continued {
				t.Errorf("trace = %s, parent = %s, want continued %t", got[0].TraceID, got[0].ParentID, tc.continued)
			}
		})
	}
}

func TestAShareOfTheTracesIsSampled(t *testing.T) {
	for share, want := range map[float64][2]int{0: {0, 0}, 0.25: {350, 650}, 1: {2000, 2000}} {
		sampled := 0
		tracer := New(share, func(Span) { sampled++ })
		for range 2000 {
			tracer.Receive("", "request", time.Now()).End(time.Now(), "")
		}
		if sampled < want[0] || sampled > want[1] {
			t.Errorf("sampled traces with the share %g = %d of 2000, want %d to %d", share, sampled, want[0], want[1])
		}
	}
	low, high := "00-"+strings.Repeat("a", 16)+"0000000000000001-"+spanID+"-01", "00-"+strings.Repeat("a", 16)+"f000000000000001-"+spanID+"-01"
	tracer := New(0.5, func(Span) {})
	if tracer.Receive(low, "", time.Now()) == nil || tracer.Receive(high, "", time.Now()) != nil {
		t.Error("the id of the trace does not determine the sampling")
	}
}

func TestASpanContinuesItsParent(t *testing.T) {
	var got []Span
	tracer := New(1, func(s Span) { got = append(got, s) })
	outer := tracer.Receive("", "one", time.Unix(1, 0))
	ctx := NewContext(context.Background(), outer.Parent())
	inner := tracer.Continue(FromContext(ctx), "two", Client, time.Unix(2, 0))
	inner.Set("key", "value")
	inner.Set("none", "")
	inner.End(time.Unix(3, 0), "why")
	outer.End(time.Unix(4, 0), "")
	relaytest.Equal(t, "the inner span", got[0],
		Span{got[1].TraceID, got[0].SpanID, got[1].SpanID, "two", Client, time.Unix(2, 0), time.Unix(3, 0), []Attribute{{"key", "value"}}, "why"})
	relaytest.Equal(t, "the parent of the outer span", got[1].ParentID, "")
	for _, p := range []Parent{"", "nonsense"} {
		if tracer.Continue(p, "none", Client, time.Now()) != nil {
			t.Errorf("the invalid parent %q was continued", p)
		}
	}
}

func TestANilTracerAllocatesNothing(t *testing.T) {
	var tracer *Tracer
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		a := tracer.Receive("00-"+traceID+"-"+spanID+"-01", "request", time.Time{})
		a.Name("x")
		a.Set("k", "v")
		b := tracer.Continue(FromContext(NewContext(ctx, a.Parent())), "two", Client, time.Time{})
		b.End(time.Time{}, "")
		a.End(time.Time{}, "")
	}); n != 0 {
		t.Errorf("allocations = %g, want 0", n)
	}
}

func FuzzReceive(f *testing.F) {
	f.Add("00-" + traceID + "-" + spanID + "-01")
	f.Add("01-" + traceID + "-" + spanID + "-01-x")
	f.Fuzz(func(t *testing.T, header string) {
		var got []Span
		tracer := New(1, func(s Span) { got = append(got, s) })
		a := tracer.Receive(header, "request", time.Now())
		a.End(time.Now(), "")
		if a == nil {
			return
		}
		if b := tracer.Continue(a.Parent(), "next", Internal, time.Now()); b == nil || b.span.TraceID != got[0].TraceID || len(got[0].TraceID) != 32 {
			t.Errorf("the parent %q was not continued", a.Parent())
		}
	})
}
