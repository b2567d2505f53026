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

// TestDashboardsShowWhatTheGatewayWrites asks a real InfluxDB, filled by the
// gateway, every query of every dashboard as Grafana would. None may come back
// with nothing.
func TestDashboardsShowWhatTheGatewayWrites(t *testing.T) {
	t.Parallel()
	s := &e2e.Site{Name: "influxd", Influx: influxtest.Start(t, influxtest.Options{})}
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "inventory.yaml"), "PENSTOCK_INFLUX_URL="+s.Influx.URL, "PENSTOCK_INFLUX_BUCKET=board")
	fill(g)
	files, err := filepath.Glob(filepath.Join(e2e.Root(t), "deploy", "grafana", "dashboards", "*.json"))
	relaytest.NoError(t, err)
	if len(files) != 8 {
		t.Fatalf("dashboards: %q", files)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		relaytest.NoError(t, err)
		if strings.Contains(string(raw), `"prometheus"`) {
			continue // TestPrometheusReadsWhatTheGatewayTells
		}
		t.Run(filepath.Base(name), func(t *testing.T) { showsAll(t, s.Influx, raw) })
	}
	t.Run("of a decoder", func(t *testing.T) {
		got := g.RunCommand("", "dashboard", "--decoder", "sent")
		got.Mentions(t, e2e.ExitDone)
		showsAll(t, s.Influx, []byte(got.Stdout))
	})
	t.Run("loss is what the gaps in the counter say", func(t *testing.T) {
		b := &board{t: t, db: s.Influx, all: map[string]string{"account": ".*"}, some: map[string][]string{"account": nil}}
		for _, p := range shippedDashboard(t, "fleet").Panels {
			if p.Title == "Loss" { // one device: 34 steps, 29 frames; the other: nothing is missing
				relaytest.Equal(t, "lost", fmt.Sprintf("%.4v", b.ask(b.spelled(p.Targets[0].Query, "")[0])), "[[0 14.71 34] [0 0 29]]")
			}
		}
	})
	t.Run("devices without a counter are heard, and each has its name", func(t *testing.T) {
		b := &board{t: t, db: s.Influx, all: map[string]string{"account": ".*"}, some: map[string][]string{"account": nil}}
		for _, p := range shippedDashboard(t, "fleet").Panels {
			rows := b.ask(b.spelled(p.Targets[0].Query, "")[0])
			switch p.Title {
			case "Devices heard":
				relaytest.Equal(t, p.Title, fmt.Sprint(rows), "[[0 3]]")
			case "Frames":
				relaytest.Equal(t, p.Title, fmt.Sprint(rows[0][1]), "90")
			case "Last seen":
				var names []string
				for _, row := range rows {
					names = append(names, fmt.Sprint(row[2]))
				}
				slices.Sort(names)
				relaytest.Equal(t, p.Title, fmt.Sprint(names), "[Probe 7 Probe 7 shed]")
			}
		}
	})
	for name, tc := range map[string]struct{ args, said string }{
		"a decoder that two accounts have":           {"--decoder lpp", "name the account"},
		"a decoder that nobody has":                  {"--decoder none", "decoder none: not found"},
		"a decoder of the account that is named":     {"--decoder lpp --account 1", `"title": "Penstock: Field tester"`},
		"a decoder of the other account":             {"--decoder lpp --account 2", `"title": "Penstock: Globex's own"`},
		"units of the decoder's sensors":             {"--decoder sent", `"unit": "celsius"`},
		"one that maps nothing, which shows nothing": {"--decoder " + g.As("acme-all-0123456").CreateDecoder("json", ""), "maps no keys"},
	} {
		t.Run(name, func(t *testing.T) {
			got := g.RunCommand("", append([]string{"dashboard"}, strings.Fields(tc.args)...)...)
			got.Mentions(t, got.Code, tc.said)
		})
	}
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

// allRounder is the device that has all there is: numbers, texts, a radio side.
const allRounder = "70b3d57ed0aa0002"

// fill has devices of each kind send for an hour until now: two that count their
// frames, lose some and tell their battery, and one that posts values and texts.
func fill(g *e2e.Gateway) {
	g.T.Helper()
	acme := g.As("acme-all-0123456")
	begun := time.Now().UTC().Add(-time.Hour)
	for n := range 30 {
		at := begun.Add(time.Duration(n) * 2 * time.Minute).Format("2006-01-02T15:04:05.000Z")
		for device, counter := range map[string]int{"70b3d57ed0aa0001": n + n/5, allRounder: 65000 + n} {
			body := e2e.Fixture(g.T, "chirpstack/up.json", "70b3d57ed0001234", device, "2026-03-01T10:15:30.250Z", at,
				`"fCnt": 4711`, fmt.Sprintf(`"fCnt": %d`, counter), "8b2f6c1e", fmt.Sprintf("%08d", n))
			if n%2 == 0 { // heard by one gateway alone
				body = regexp.MustCompile(`(?s),\s*\{"gatewayId": "0016c001ff10a3b5".*?\}`).ReplaceAllString(body, "")
			}
			decoder := "lpp"
			if device == allRounder {
				decoder = "sent"
				body = strings.Replace(body, `"data":`, fmt.Sprintf(`"object": {"temperature": %d, "air": {"humidity": 40}, "door": "shut"}, "data":`, n), 1)
			}
			e2e.PostWebhook(g.T, acme, "/webhooks/lorawan?event=up&decoder_id="+decoder, body)
		}
		acme.Post("/webhooks/generic/shed?decoder_id=sent", fmt.Sprintf(`{"time":%q,"temperature":%d,"air":{"humidity":%d},"door":"ajar"}`, at, n, 50+n)).Mentions(g.T, 200, "ajar")
	}
	g.AwaitProcessed()
	at := begun.Add(30 * time.Minute).Format(time.RFC3339)
	for _, device := range []string{"70b3d57ed0aa0001", allRounder} {
		e2e.PostWebhook(g.T, acme, "/webhooks/lorawan?event=status", e2e.Fixture(g.T, "chirpstack/status.json", "70b3d57ed0001234", device, "2026-03-01T10:16:00Z", at))
	}
	g.AwaitProcessed()
	if set := g.Events("state=quarantined"); len(set) > 0 {
		g.T.Fatalf("in quarantine: %+v", set[0])
	}
}

// showsAll asks every query of a dashboard, with every variable set to all of its
// values and then to each of them.
func showsAll(t *testing.T, db *influxtest.Server, raw []byte) {
	var d dashboard
	relaytest.NoError(t, json.Unmarshal(raw, &d))
	if len(d.Panels) == 0 {
		t.Fatal("no panels")
	}
	b := &board{t: t, db: db, all: map[string]string{}, some: map[string][]string{}, sensors: strings.HasPrefix(d.UID, "penstock-decoder-")}
	for _, one := range d.Templating.List {
		if one.Type == "query" {
			b.choose(one)
		}
	}
	for _, p := range d.Panels {
		b.panel(p)
	}
}

// panel wants every one of a panel's repetitions to show something, and every
// query of it to have an answer in one of them. Only of a decoder's sensors is
// each either a number or a text.
func (b *board) panel(p panel) {
	b.t.Helper()
	shown := map[int]bool{}
	for n, q := range p.Targets {
		answered := false
		for at, asked := range b.spelled(q.Query, p.Repeat) {
			if len(b.ask(asked)) > 0 {
				answered, shown[at] = true, true
			}
			if n == len(p.Targets)-1 && !shown[at] {
				b.t.Errorf("panel %q shows nothing: %s", p.Title, asked)
			}
		}
		if !answered && !b.sensors {
			b.t.Errorf("panel %q has a query without a result: %s", p.Title, q.Query)
		}
	}
}

// board is a dashboard whose variables have values.
type board struct {
	t    *testing.T
	db   *influxtest.Server
	all  map[string]string // what "All" is written as, where there is one
	some map[string][]string
	// sensors: it is a decoder's.
	sensors bool
}

// choose asks for the values of a variable, as those before it stand.
func (b *board) choose(v variable) {
	b.t.Helper()
	found := map[string]bool{}
	for _, asked := range b.spelled(v.Query, "") {
		for _, row := range b.ask(asked) {
			found[fmt.Sprint(row[1])] = true
		}
	}
	if len(found) == 0 {
		b.t.Fatalf("variable %s has no values: %s", v.Name, v.Query)
	}
	for value := range found {
		b.some[v.Name] = append(b.some[v.Name], value)
	}
	slices.Sort(b.some[v.Name])
	if v.Name == "device" && !v.Multi {
		if !found[allRounder] {
			b.t.Fatalf("device %s is no choice: %q", allRounder, b.some[v.Name])
		}
		b.some[v.Name] = []string{allRounder}
	}
	if v.AllValue != "" {
		b.all[v.Name] = v.AllValue
	}
}

// spelled writes a query as Grafana sends it: with "All" where there is that, and
// once for every value of the variable by which the panel repeats.
func (b *board) spelled(query, repeat string) []string {
	now := time.Now().UTC()
	query = strings.NewReplacer(
		"$timeFilter", fmt.Sprintf("time >= %dms and time <= %dms", now.Add(-3*time.Hour).UnixMilli(), now.Add(time.Hour).UnixMilli()),
		"$__interval", "10m",
	).Replace(query)
	out := []string{query}
	for name := range b.some {
		if !strings.Contains(query, "$"+name) {
			continue
		}
		values := b.some[name]
		if all, ok := b.all[name]; ok && name != repeat {
			values = []string{all}
		}
		var next []string
		for _, q := range out {
			for _, value := range values {
				next = append(next, strings.ReplaceAll(q, "$"+name, value))
			}
		}
		out = next
	}
	return out
}

// ask returns the rows of all series that a query gives.
func (b *board) ask(query string) (rows [][]any) {
	b.t.Helper()
	var answer struct {
		Results []struct{ Series []struct{ Values [][]any } }
	}
	relaytest.NoError(b.t, json.Unmarshal([]byte(b.db.Query(b.t, "board", query)), &answer))
	for _, r := range answer.Results {
		for _, s := range r.Series {
			rows = append(rows, s.Values...)
		}
	}
	return rows
}
