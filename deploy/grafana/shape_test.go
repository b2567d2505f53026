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

// provisioned reads what Grafana is told of data sources and dashboards.
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
			t.Errorf("data source %s is not complete: access %q, url %q, database %q", d.UID, d.Access, d.URL, d.JSONData["dbName"])
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

func readYAML(t *testing.T, name string, to any) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(raw, to)
	}
	relaytest.NoError(t, err)
}

func TestComposeMountsWhatIsProvisioned(t *testing.T) {
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
			t.Errorf("grafana does not mount %s: %q", want, compose.Services["grafana"].Volumes)
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
		t.Errorf("the gateway writes to %s, Grafana reads %s", bucket, file.Datasources[0].JSONData["dbName"])
	}
}

func TestDashboardsHaveTheShapeThatGrafanaWants(t *testing.T) {
	sources, _ := provisioned(t)
	files, err := filepath.Glob("dashboards/*.json")
	relaytest.NoError(t, err)
	raw := map[string][]byte{}
	for _, name := range files {
		if raw[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	if raw["of a decoder"], err = Encode(Decoder("a/decoder's id, longer than Grafana takes", "It's \"odd\"", []Sensor{
		{Key: "it's", Type: `a "type"`, Unit: "°C"}, {Key: "b", Type: "t", Name: "B", Unit: "furlong"},
	})); err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	for name, text := range raw {
		var d Dashboard
		strict := json.NewDecoder(bytes.NewReader(text))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if before := uids[d.UID]; before != "" {
			t.Errorf("%s has the uid of %s", name, before)
		}
		uids[d.UID] = name
		for _, wrong := range slices.Concat(shape(d), places(d), variables(d), origins(d, sources)) {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}

// shape lists what is wrong with a dashboard and its panels themselves.
func shape(d Dashboard) (wrong []string) {
	if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`).MatchString(d.UID) || d.Title == "" || d.SchemaVersion < 36 || d.SchemaVersion > 41 || d.Time.From == "" || d.Time.To == "" {
		wrong = append(wrong, fmt.Sprintf("uid %q, title %q, schemaVersion %d, time %v", d.UID, d.Title, d.SchemaVersion, d.Time))
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if p.ID <= 0 || ids[p.ID] || p.Title == "" || p.Options == nil || p.FieldConfig.Overrides == nil || len(p.Targets) == 0 {
			wrong = append(wrong, fmt.Sprintf("panel %d %q is incomplete, or has another's id", p.ID, p.Title))
		}
		ids[p.ID] = true
		if !slices.Contains([]string{"timeseries", "stat", "table"}, p.Type) {
			wrong = append(wrong, "there is no panel "+p.Type)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			influx := q.RawQuery && q.Query != "" && q.Expr == "" && (q.ResultFormat == "time_series" || q.ResultFormat == "table")
			metrics := q.Datasource.Type == "prometheus" && q.Expr != "" && q.Query == "" && q.ResultFormat == ""
			if q.RefID == "" || refs[q.RefID] || influx == metrics {
				wrong = append(wrong, fmt.Sprintf("panel %q: the target %q repeats a refId, or is of both kinds or neither: %q, %q", p.Title, q.RefID, q.Query, q.Expr))
			}
			refs[q.RefID] = true
			if metrics {
				continue // asked for the range that is shown
			}
			if !strings.Contains(q.Query, "$timeFilter") {
				wrong = append(wrong, fmt.Sprintf("panel %q does not keep to the time: %s", p.Title, q.Query))
			}
		}
	}
	return wrong
}

// places lists panels that leave the grid or lie on one another.
func places(d Dashboard) (wrong []string) {
	taken := map[[2]int]int{}
	for _, p := range d.Panels {
		g := p.GridPos
		if g.W <= 0 || g.H <= 0 || g.X < 0 || g.Y < 0 || g.X+g.W > 24 {
			wrong = append(wrong, fmt.Sprintf("panel %d leaves the grid: %d by %d at %d, %d", p.ID, g.W, g.H, g.X, g.Y))
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != 0 && other != p.ID {
					return append(wrong, fmt.Sprintf("panel %d lies on panel %d", p.ID, other))
				}
				taken[[2]int{x, y}] = p.ID
			}
		}
	}
	return wrong
}

// variables lists those that are used and not defined, or the other way round.
func variables(d Dashboard) (wrong []string) {
	defined, used := map[string]bool{}, map[string]bool{}
	look := func(texts ...string) {
		for _, m := range regexp.MustCompile(`\$(?:\{(\w+)|(\w+))`).FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
			name := m[1] + m[2]
			if name == "timeFilter" || strings.HasPrefix(name, "__") {
				continue
			}
			if used[name] = true; !defined[name] {
				wrong = append(wrong, "$"+name+" is used and not defined before")
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "datasource" && v.Name != "" && v.Current != nil && (v.Query == "influxdb" || v.Query == "prometheus") {
			defined[v.Name], used[v.Name] = true, true // see origins
			continue
		}
		if v.Name == "" || defined[v.Name] || v.Type != "query" || v.Refresh != 2 || v.Query != v.Definition {
			wrong = append(wrong, fmt.Sprintf("variable %q is incomplete, or has another's name: type %q, refresh %d, query %q, definition %q", v.Name, v.Type, v.Refresh, v.Query, v.Definition))
		}
		look(v.Query)
		defined[v.Name] = true
	}
	for _, p := range d.Panels {
		look(p.Title, p.Description)
		if p.Repeat != "" {
			look("$" + p.Repeat)
		}
		for _, q := range p.Targets {
			look(q.Query, q.Expr)
			if rest := strings.NewReplacer("$measurement", "", "$tag_", "").Replace(q.Alias); strings.Contains(rest, "$") {
				wrong = append(wrong, "an alias knows measurement and tags only: "+q.Alias)
			}
		}
	}
	for name := range defined {
		if !used[name] {
			wrong = append(wrong, "$"+name+" is defined and not used")
		}
	}
	return wrong
}

// origins lists what does not refer to a variable for a data source of its kind, and such
// variables whose first value is not provisioned.
func origins(d Dashboard, sources map[string]string) (wrong []string) {
	kinds := make(map[string]string)
	for _, v := range d.Templating.List {
		if v.Type != "datasource" {
			continue
		}
		kinds["${"+v.Name+"}"] = v.Query
		if kind := sources[v.Current.Value]; kind != v.Query {
			wrong = append(wrong, fmt.Sprintf("variable %s: no data source %q of type %q is provisioned", v.Name, v.Current.Value, v.Query))
		}
		if !slices.ContainsFunc(d.Requires, func(r Required) bool { return r.ID == v.Query }) {
			wrong = append(wrong, "the dashboard does not require "+v.Query)
		}
	}
	check := func(of string, s Datasource) {
		if kinds[s.UID] != s.Type {
			wrong = append(wrong, fmt.Sprintf("%s: no variable %q for a data source of type %q", of, s.UID, s.Type))
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
	return wrong
}
