package operations

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/delivery/influx/influxtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestEveryDashboardQueryHasAResult sends every query of every dashboard, in the form in which Grafana
// sends it, to an InfluxDB that the gateway has written to.
func TestEveryDashboardQueryHasAResult(t *testing.T) {
	t.Parallel()
	s := &e2e.Site{Name: "influxd", Influx: influxtest.Start(t, influxtest.Options{})}
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "inventory.yaml"), "PENSTOCK_INFLUX_URL="+s.Influx.URL, "PENSTOCK_INFLUX_BUCKET=board")
	postFrames(g)
	files, err := filepath.Glob(filepath.Join(e2e.Root(t), "deploy", "grafana", "dashboards", "*.json"))
	relaytest.NoError(t, err)
	if len(files) != 8 {
		t.Fatalf("dashboards = %q, want 8", files)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		relaytest.NoError(t, err)
		if strings.Contains(string(raw), `"prometheus"`) {
			continue // see TestEveryPrometheusQueryHasAResult
		}
		t.Run(filepath.Base(name), func(t *testing.T) { checkDashboard(t, s.Influx, raw) })
	}
	t.Run("the dashboard of a decoder", func(t *testing.T) {
		got := g.RunCommand("", "dashboard", "--decoder", "sent")
		got.Mentions(t, e2e.ExitDone)
		checkDashboard(t, s.Influx, []byte(got.Stdout))
	})
	t.Run("loss is computed from the gaps in the counter", func(t *testing.T) {
		// one device has 34 steps of the counter and 29 frames after its first; the other has lost no frames
		relaytest.Equal(t, "Loss", fmt.Sprintf("%.4v", fleetRows(t, s.Influx, "Loss")), "[[0 14.71 34] [0 0 29]]")
	})
	t.Run("devices without a counter are counted, and each has its name", func(t *testing.T) {
		relaytest.Equal(t, "Devices heard", fmt.Sprint(fleetRows(t, s.Influx, "Devices heard")), "[[0 3]]")
		relaytest.Equal(t, "Frames", fmt.Sprint(fleetRows(t, s.Influx, "Frames")[0][1]), "90")
		var names []string
		for _, row := range fleetRows(t, s.Influx, "Last seen") {
			names = append(names, fmt.Sprint(row[2]))
		}
		slices.Sort(names)
		relaytest.Equal(t, "Last seen", fmt.Sprint(names), "[Probe 7 Probe 7 shed]")
	})
	for name, tc := range map[string]struct {
		args, want string
		code       int
	}{
		"a decoder that two accounts have": {"--decoder lpp", "name the account", 1},
		"an unknown decoder":               {"--decoder none", "decoder none: not found", 1},
		"a decoder of an account":          {"--decoder lpp --account 1", `"title": "Penstock: Field tester"`, 0},
		"a decoder of the other account":   {"--decoder lpp --account 2", `"title": "Penstock: Globex's own"`, 0},
		"units of the decoder's sensors":   {"--decoder sent", `"unit": "celsius"`, 0},
		"a decoder without mapped keys":    {"--decoder " + g.WithToken("acme-all-0123456").CreateDecoder("json", ""), "maps no keys", 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := g.RunCommand("", append([]string{"dashboard"}, strings.Fields(tc.args)...)...)
			got.Mentions(t, tc.code, tc.want)
		})
	}
}

// fleetRows returns the rows of a panel of the dashboard fleet for all accounts.
func fleetRows(t *testing.T, db *influxtest.Server, title string) [][]any {
	t.Helper()
	b := &board{t: t, db: db, allValues: map[string]string{"account": ".*"}, values: map[string][]string{"account": nil}}
	for _, p := range shippedDashboard(t, "fleet").Panels {
		if p.Title == title {
			return b.query(b.expand(p.Targets[0].Query, "")[0])
		}
	}
	t.Fatalf("the dashboard has no panel %q", title)
	return nil
}

// dashboard has the fields of a dashboard that the tests read.
type dashboard struct {
	UID        string
	Panels     []panel
	Templating struct{ List []variable }
}

type panel struct {
	Title, Repeat string
	Targets       []struct{ Query, Expr, Format string }
}

type variable struct {
	Name, Type, Query, AllValue string
	Multi                       bool
}

// shippedDashboard reads a dashboard of deploy/grafana.
func shippedDashboard(t *testing.T, name string) (d dashboard) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(e2e.Root(t), "deploy", "grafana", "dashboards", name+".json"))
	relaytest.NoError(t, err)
	relaytest.NoError(t, json.Unmarshal(raw, &d))
	return d
}

// completeDevice is the device that has every kind of data: numbers, texts and radio data.
const completeDevice = "70b3d57ed0aa0002"

// postFrames posts the frames of the last hour for each kind of device: two devices that count their
// frames, of which one loses frames, and a device that posts values and texts without a counter. The
// devices with a counter also report their battery.
func postFrames(g *e2e.Gateway) {
	g.T.Helper()
	acme := g.WithToken("acme-all-0123456")
	firstFrameAt := time.Now().UTC().Add(-time.Hour)
	for n := range 30 {
		frameTime := firstFrameAt.Add(time.Duration(n) * 2 * time.Minute).Format("2006-01-02T15:04:05.000Z")
		for device, counter := range map[string]int{"70b3d57ed0aa0001": n + n/5, completeDevice: 65000 + n} {
			body := e2e.Fixture(g.T, "chirpstack/up.json", "70b3d57ed0001234", device, "2026-03-01T10:15:30.250Z", frameTime,
				`"fCnt": 4711`, fmt.Sprintf(`"fCnt": %d`, counter), "8b2f6c1e", fmt.Sprintf("%08d", n))
			if n%2 == 0 { // received by only one gateway
				body = regexp.MustCompile(`(?s),\s*\{"gatewayId": "0016c001ff10a3b5".*?\}`).ReplaceAllString(body, "")
			}
			decoder := "lpp"
			if device == completeDevice {
				decoder = "sent"
				body = strings.Replace(body, `"data":`, fmt.Sprintf(`"object": {"temperature": %d, "air": {"humidity": 40}, "door": "shut"}, "data":`, n), 1)
			}
			e2e.PostWebhook(g.T, acme, "/webhooks/lorawan?event=up&decoder_id="+decoder, body)
		}
		acme.Post("/webhooks/generic/shed?decoder_id=sent", fmt.Sprintf(`{"time":%q,"temperature":%d,"air":{"humidity":%d},"door":"ajar"}`, frameTime, n, 50+n)).Mentions(g.T, 200, "ajar")
	}
	g.AwaitProcessed()
	statusTime := firstFrameAt.Add(30 * time.Minute).Format(time.RFC3339)
	for _, device := range []string{"70b3d57ed0aa0001", completeDevice} {
		e2e.PostWebhook(g.T, acme, "/webhooks/lorawan?event=status", e2e.Fixture(g.T, "chirpstack/status.json", "70b3d57ed0001234", device, "2026-03-01T10:16:00Z", statusTime))
	}
	g.AwaitProcessed()
	if events := g.Events("state=quarantined"); len(events) > 0 {
		g.T.Fatalf("quarantined event: %+v", events[0])
	}
}

// checkDashboard runs every query of a dashboard, with every variable set to "All" and then to each of its
// values.
func checkDashboard(t *testing.T, db *influxtest.Server, raw []byte) {
	var d dashboard
	relaytest.NoError(t, json.Unmarshal(raw, &d))
	if len(d.Panels) == 0 {
		t.Fatal("the dashboard has no panels")
	}
	b := &board{t: t, db: db, allValues: map[string]string{}, values: map[string][]string{}, sensors: strings.HasPrefix(d.UID, "penstock-decoder-")}
	for _, variable := range d.Templating.List {
		if variable.Type == "query" {
			b.loadValues(variable)
		}
	}
	for _, p := range d.Panels {
		b.checkPanel(p)
	}
}

// checkPanel checks that every repetition of a panel has a result, and that every query of the panel has a
// result in one of the repetitions. The dashboard of a decoder is exempt from the second check, because
// its sensors have either numbers or texts.
func (b *board) checkPanel(p panel) {
	b.t.Helper()
	hasResult := map[int]bool{}
	for n, q := range p.Targets {
		queryHasResult := false
		for repetition, query := range b.expand(q.Query, p.Repeat) {
			if len(b.query(query)) > 0 {
				queryHasResult, hasResult[repetition] = true, true
			}
			if n == len(p.Targets)-1 && !hasResult[repetition] {
				b.t.Errorf("panel %q has no result: %s", p.Title, query)
			}
		}
		if !queryHasResult && !b.sensors {
			b.t.Errorf("panel %q has a query without a result: %s", p.Title, q.Query)
		}
	}
}

// board is a dashboard with values for its variables.
type board struct {
	t         *testing.T
	db        *influxtest.Server
	allValues map[string]string   // value of "All", by variable that has one
	values    map[string][]string // by variable
	// sensors is true for the dashboard of a decoder.
	sensors bool
}

// loadValues queries the values of a variable. The query may contain the variables before it.
func (b *board) loadValues(v variable) {
	b.t.Helper()
	found := map[string]bool{}
	for _, query := range b.expand(v.Query, "") {
		for _, row := range b.query(query) {
			found[fmt.Sprint(row[1])] = true
		}
	}
	if len(found) == 0 {
		b.t.Fatalf("variable %s has no values: %s", v.Name, v.Query)
	}
	for value := range found {
		b.values[v.Name] = append(b.values[v.Name], value)
	}
	slices.Sort(b.values[v.Name])
	if v.Name == "device" && !v.Multi {
		if !found[completeDevice] {
			b.t.Fatalf("device %s is not among the values %q", completeDevice, b.values[v.Name])
		}
		b.values[v.Name] = []string{completeDevice}
	}
	if v.AllValue != "" {
		b.allValues[v.Name] = v.AllValue
	}
}

// expand returns a query in the forms in which Grafana sends it: with "All" for variables that have it,
// and once for every value of the variable by which the panel repeats.
func (b *board) expand(query, repeat string) []string {
	now := time.Now().UTC()
	query = strings.NewReplacer(
		"$timeFilter", fmt.Sprintf("time >= %dms and time <= %dms", now.Add(-3*time.Hour).UnixMilli(), now.Add(time.Hour).UnixMilli()),
		"$__interval", "10m",
	).Replace(query)
	queries := []string{query}
	for name := range b.values {
		if !strings.Contains(query, "$"+name) {
			continue
		}
		values := b.values[name]
		if allValue, ok := b.allValues[name]; ok && name != repeat {
			values = []string{allValue}
		}
		var expanded []string
		for _, q := range queries {
			for _, value := range values {
				expanded = append(expanded, strings.ReplaceAll(q, "$"+name, value))
			}
		}
		queries = expanded
	}
	return queries
}

// query returns the rows of all series in the result of a query.
func (b *board) query(text string) (rows [][]any) {
	b.t.Helper()
	var answer struct {
		Results []struct{ Series []struct{ Values [][]any } }
	}
	relaytest.NoError(b.t, json.Unmarshal([]byte(b.db.Query(b.t, "board", text)), &answer))
	for _, r := range answer.Results {
		for _, s := range r.Series {
			rows = append(rows, s.Values...)
		}
	}
	return rows
}
