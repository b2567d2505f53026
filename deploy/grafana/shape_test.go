package grafana

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/penstock/penstock/relay/relaytest"
)

// provisioned reads datasource.yaml and dashboards.yaml. It returns the types of the data sources by
// uid, and the path of the dashboards.
func provisioned(t *testing.T) (sources map[string]string, path string) {
	t.Helper()
	var file struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault, Editable          bool
			JSONData                     map[string]any `yaml:"jsonData"`
		}
	}
	readYAML(t, "datasource.yaml", &file)
	sources = make(map[string]string)
	for _, d := range file.Datasources {
		sources[d.UID] = d.Type
		if d.Access != "proxy" || d.URL == "" || d.Type == "influxdb" && d.JSONData["dbName"] == "" {
			t.Errorf("data source %s is incomplete: access %q, url %q, database %q", d.UID, d.Access, d.URL, d.JSONData["dbName"])
		}
	}
	var providers struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Folder, Type string
			Options            struct{ Path string }
		}
	}
	readYAML(t, "dashboards.yaml", &providers)
	relaytest.Equal(t, "the apiVersion of datasource.yaml", file.APIVersion, 1)
	relaytest.Equal(t, "the apiVersion of dashboards.yaml", providers.APIVersion, 1)
	if len(providers.Providers) != 1 {
		t.Fatalf("dashboards.yaml has %d providers, want 1", len(providers.Providers))
	}
	relaytest.Equal(t, "the type of the provider", providers.Providers[0].Type, "file")
	return sources, providers.Providers[0].Options.Path
}

func readYAML(t *testing.T, name string, value any) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(raw, value)
	}
	relaytest.NoError(t, err)
}

func TestComposeMountsTheProvisioningFiles(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Volumes     []string
			Environment map[string]string
		}
	}
	readYAML(t, "../compose.yaml", &compose)
	_, path := provisioned(t)
	for _, want := range []string{
		"./grafana/datasource.yaml:/etc/grafana/provisioning/datasources/penstock.yaml:ro",
		"./grafana/dashboards.yaml:/etc/grafana/provisioning/dashboards/penstock.yaml:ro",
		"./grafana/dashboards:" + path + ":ro",
	} {
		if !slices.Contains(compose.Services["grafana"].Volumes, want) {
			t.Errorf("grafana does not mount %s, only %q", want, compose.Services["grafana"].Volumes)
		}
	}
	var file struct {
		Datasources []struct {
			JSONData map[string]any `yaml:"jsonData"`
		}
	}
	readYAML(t, "datasource.yaml", &file)
	bucket := compose.Services["penstock"].Environment["PENSTOCK_INFLUX_BUCKET"]
	if db, _, _ := strings.Cut(bucket, "/"); db != file.Datasources[0].JSONData["dbName"] {
		t.Errorf("the gateway writes to the bucket %s, but Grafana reads the database %s", bucket, file.Datasources[0].JSONData["dbName"])
	}
}

func TestDashboardsAreValid(t *testing.T) {
	sources, _ := provisioned(t)
	files, err := filepath.Glob("dashboards/*.json")
	relaytest.NoError(t, err)
	dashboards := map[string][]byte{}
	for _, name := range files {
		if dashboards[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	if dashboards["the dashboard of a decoder"], err = Encode(Decoder("a/decoder's id, longer than Grafana takes", "It's \"odd\"", []Sensor{
		{Key: "it's", Type: `a "type"`, Unit: "°C"}, {Key: "b", Type: "t", Name: "B", Unit: "furlong"},
	})); err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	for name, text := range dashboards {
		var d Dashboard
		strict := json.NewDecoder(bytes.NewReader(text))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if otherName := uids[d.UID]; otherName != "" {
			t.Errorf("%s has the same uid as %s", name, otherName)
		}
		uids[d.UID] = name
		for _, problem := range slices.Concat(shape(d), places(d), variables(d), origins(d, sources)) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// shape returns the problems of a dashboard, its panels and their queries.
func shape(d Dashboard) (problems []string) {
	if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`).MatchString(d.UID) || d.Title == "" || d.SchemaVersion < 36 || d.SchemaVersion > 41 || d.Time.From == "" || d.Time.To == "" {
		problems = append(problems, fmt.Sprintf("invalid uid %q, title %q, schemaVersion %d or time %v", d.UID, d.Title, d.SchemaVersion, d.Time))
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if p.ID <= 0 || ids[p.ID] || p.Title == "" || p.Options == nil || p.FieldConfig.Overrides == nil || len(p.Targets) == 0 {
			problems = append(problems, fmt.Sprintf("panel %d %q is incomplete, or has the id of another panel", p.ID, p.Title))
		}
		ids[p.ID] = true
		if !slices.Contains([]string{"timeseries", "stat", "table"}, p.Type) {
			problems = append(problems, "unknown panel type "+p.Type)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			influx := q.RawQuery && q.Query != "" && q.Expr == "" && (q.ResultFormat == "time_series" || q.ResultFormat == "table")
			metrics := q.Datasource.Type == "prometheus" && q.Expr != "" && q.Query == "" && q.ResultFormat == ""
			if q.RefID == "" || refs[q.RefID] || influx == metrics {
				problems = append(problems, fmt.Sprintf("panel %q: target %q repeats a refId, or is not for exactly one of InfluxDB and Prometheus: query %q, expr %q", p.Title, q.RefID, q.Query, q.Expr))
			}
			refs[q.RefID] = true
			if metrics {
				continue // Grafana passes the time range to Prometheus
			}
			if !strings.Contains(q.Query, "$timeFilter") {
				problems = append(problems, fmt.Sprintf("panel %q ignores the time range: %s", p.Title, q.Query))
			}
		}
	}
	return problems
}

// places returns the panels that exceed the grid or overlap.
func places(d Dashboard) (problems []string) {
	panelAt := map[[2]int]int{}
	for _, p := range d.Panels {
		g := p.GridPos
		if g.W <= 0 || g.H <= 0 || g.X < 0 || g.Y < 0 || g.X+g.W > 24 {
			problems = append(problems, fmt.Sprintf("panel %d exceeds the grid: %d by %d at %d, %d", p.ID, g.W, g.H, g.X, g.Y))
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if otherID := panelAt[[2]int{x, y}]; otherID != 0 && otherID != p.ID {
					return append(problems, fmt.Sprintf("panel %d overlaps panel %d", p.ID, otherID))
				}
				panelAt[[2]int{x, y}] = p.ID
			}
		}
	}
	return problems
}

// variables returns the variables that are incomplete, used but not defined before, or defined but
// not used.
func variables(d Dashboard) (problems []string) {
	defined, used := map[string]bool{}, map[string]bool{}
	findUses := func(texts ...string) {
		for _, m := range regexp.MustCompile(`\$(?:\{(\w+)|(\w+))`).FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
			name := m[1] + m[2]
			if name == "timeFilter" || strings.HasPrefix(name, "__") {
				continue
			}
			if used[name] = true; !defined[name] {
				problems = append(problems, "$"+name+" is used but not defined before")
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "datasource" && v.Name != "" && v.Current != nil && (v.Query == "influxdb" || v.Query == "prometheus") {
			defined[v.Name], used[v.Name] = true, true // origins checks its uses
			continue
		}
		if v.Name == "" || defined[v.Name] || v.Type != "query" || v.Refresh != 2 || v.Query != v.Definition {
			problems = append(problems, fmt.Sprintf("variable %q is incomplete, or has the name of another variable: type %q, refresh %d, query %q, definition %q", v.Name, v.Type, v.Refresh, v.Query, v.Definition))
		}
		findUses(v.Query)
		defined[v.Name] = true
	}
	for _, p := range d.Panels {
		findUses(p.Title, p.Description)
		if p.Repeat != "" {
			findUses("$" + p.Repeat)
		}
		for _, q := range p.Targets {
			findUses(q.Query, q.Expr)
			if alias := strings.NewReplacer("$measurement", "", "$tag_", "").Replace(q.Alias); strings.Contains(alias, "$") {
				problems = append(problems, "an alias can contain only $measurement and $tag_…: "+q.Alias)
			}
		}
	}
	for name := range defined {
		if !used[name] {
			problems = append(problems, "$"+name+" is defined but not used")
		}
	}
	return problems
}

// origins returns the panels, queries and variables whose data source is not a variable of the same
// type, and the data source variables whose initial value is not provisioned.
func origins(d Dashboard, sources map[string]string) (problems []string) {
	types := make(map[string]string) // by uid, such as "${datasource}"
	for _, v := range d.Templating.List {
		if v.Type != "datasource" {
			continue
		}
		types["${"+v.Name+"}"] = v.Query
		if sources[v.Current.Value] != v.Query {
			problems = append(problems, fmt.Sprintf("variable %s: no data source %q of type %q is provisioned", v.Name, v.Current.Value, v.Query))
		}
		if !slices.ContainsFunc(d.Requires, func(r Required) bool { return r.ID == v.Query }) {
			problems = append(problems, "the dashboard does not require "+v.Query)
		}
	}
	check := func(label string, s Datasource) {
		if types[s.UID] != s.Type {
			problems = append(problems, fmt.Sprintf("%s: no variable %q for a data source of type %q", label, s.UID, s.Type))
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != "datasource" {
			check("variable "+v.Name, v.Datasource)
		}
	}
	for _, p := range d.Panels {
		check("panel "+p.Title, p.Datasource)
		for _, q := range p.Targets {
			check("panel "+p.Title, q.Datasource)
		}
	}
	return problems
}
