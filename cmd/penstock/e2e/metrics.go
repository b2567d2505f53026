package e2e

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// AwaitMetric waits until a metric has reached a value and the outcomes of all deliveries are saved.
func (g *Gateway) AwaitMetric(name string, value float64) {
	g.T.Helper()
	relaytest.Eventually(g.T, name, func() (any, bool) {
		got := Metrics(g.T, g.WithToken("").Get("/metrics").Body)[name]
		return got, got >= value
	})
	relaytest.Eventually(g.T, "outcomes are saved", func() (any, bool) {
		unsaved := Metrics(g.T, g.WithToken("").Get("/metrics").Body)["penstock_deliveries_unsaved"]
		return unsaved, unsaved == 0
	})
}

var metricLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[a-zA-Z_]\w*="(?:[^"\\]|\\.)*"(?:,[a-zA-Z_]\w*="(?:[^"\\]|\\.)*")*\})?) (\S+)$`)

// Metrics parses the text format of Prometheus strictly and returns the values by metric.
func Metrics(t *testing.T, text string) map[string]float64 {
	t.Helper()
	values := make(map[string]float64)
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, "# HELP ") || strings.HasPrefix(l, "# TYPE ") {
			continue
		}
		m := metricLine.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("not a metric: %q", l)
		}
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatalf("not a number: %q", l)
		}
		values[m[1]] = v
	}
	return values
}
