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

// readProvisioning reads the provisioning files. It returns the type of each data source by its
// uid, and the folder of the dashboards.
func readProvisioning(t *testing.T) (sources map[string]string, path string) {
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
	_, path := readProvisioning(t)
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
		t.Errorf("the gateway writes to %s, but Grafana reads %s", bucket, file.Datasources[0].JSONData["dbName"])
	}
}

// dashboard is a dashboard of Grafana with the fields that these dashboards have. The data sources are
// variables, so that __inputs is empty.
type dashboard struct {
	Inputs        []struct{}    `json:"__inputs"`
	Requires      []requirement `json:"__requires"`
	UID           string        `json:"uid"`
	Title         string        `json:"title"`
	Description   string        `json:"description,omitempty"`
	Tags          []string      `json:"tags"`
	Timezone      string        `json:"timezone"`
	SchemaVersion int           `json:"schemaVersion"`
	Version       int           `json:"version"`
	Editable      bool          `json:"editable"`
	Refresh       string        `json:"refresh"`
	GraphTooltip  int           `json:"graphTooltip"` // 1: one crosshair on all panels
	Time          timeRange     `json:"time"`
	Links         []link        `json:"links"`
	Templating    templating    `json:"templating"`
	Annotations   emptyList     `json:"annotations"`
	Panels        []panel       `json:"panels"`
}

// requirement is a program or a kind of data source that a dashboard requires.
type requirement struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// link opens the other dashboards with a tag.
type link struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Icon        string   `json:"icon"`
	Tags        []string `json:"tags"`
	AsDropdown  bool     `json:"asDropdown"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
	TargetBlank bool     `json:"targetBlank"`
	Tooltip     string   `json:"tooltip"`
	URL         string   `json:"url"`
}

// dataLink opens a URL for a value.
type dataLink struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// timeRange is the time range that a dashboard shows first: "now-24h" to "now".
type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// emptyList is the list of annotations, which no dashboard has.
type emptyList struct {
	List []struct{} `json:"list"`
}

// templating holds the variables of a dashboard.
type templating struct {
	List []variable `json:"list"`
}

// variable is a choice at the top of a dashboard, filled by a query, or with the data sources
// of a kind.
type variable struct {
	Name       string     `json:"name"`
	Label      string     `json:"label"`
	Type       string     `json:"type"` // query, or datasource
	Datasource datasource `json:"datasource,omitzero"`
	Query      string     `json:"query"`
	Definition string     `json:"definition"`
	Refresh    int        `json:"refresh"` // 2: whenever the time range changes
	Sort       int        `json:"sort"`    // 1: by name
	Multi      bool       `json:"multi"`
	IncludeAll bool       `json:"includeAll"`
	AllValue   string     `json:"allValue,omitempty"`
	Current    *choice    `json:"current,omitempty"`
}

// choice is the initial value of a variable.
type choice struct {
	Text  string `json:"text"`
	Value string `json:"value"`
}

// datasource refers to a data source by its uid.
type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// panel is a panel and its position on the grid, which has 24 columns.
type panel struct {
	ID          int            `json:"id"`
	Type        string         `json:"type"`
	Title       string         `json:"title"`
	Description string         `json:"description,omitempty"`
	GridPos     gridPos        `json:"gridPos"`
	Datasource  datasource     `json:"datasource"`
	Repeat      string         `json:"repeat,omitempty"` // once for each value of this variable
	Direction   string         `json:"repeatDirection,omitempty"`
	MaxPerRow   int            `json:"maxPerRow,omitempty"`
	Targets     []target       `json:"targets"`
	Transform   []transform    `json:"transformations,omitempty"`
	FieldConfig fieldConfig    `json:"fieldConfig"`
	Options     map[string]any `json:"options"`
}

type gridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// target is a query of a panel.
type target struct {
	RefID        string     `json:"refId"`
	Datasource   datasource `json:"datasource"`
	Query        string     `json:"query,omitempty"`
	RawQuery     bool       `json:"rawQuery,omitempty"`
	ResultFormat string     `json:"resultFormat,omitempty"` // time_series or table
	Alias        string     `json:"alias,omitempty"`
	// Fields of a query to Prometheus, without the fields above:
	Expr         string `json:"expr,omitempty"`
	LegendFormat string `json:"legendFormat,omitempty"`
	Format       string `json:"format,omitempty"`
	Instant      bool   `json:"instant,omitempty"`
}

// transform changes the results of the queries before the panel shows them.
type transform struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}

// fieldConfig configures the values of a panel.
type fieldConfig struct {
	Defaults  fieldDefaults `json:"defaults"`
	Overrides []struct{}    `json:"overrides"`
}

// fieldDefaults has the unit and the limits of the scale.
type fieldDefaults struct {
	Unit   string         `json:"unit,omitempty"`
	Min    *float64       `json:"min,omitempty"`
	Max    *float64       `json:"max,omitempty"`
	Custom map[string]any `json:"custom,omitempty"`
	Links  []dataLink     `json:"links,omitempty"`
}

func TestDashboardsHaveTheShapeThatGrafanaRequires(t *testing.T) {
	sources, _ := readProvisioning(t)
	files, err := filepath.Glob("dashboards/*.json")
	relaytest.NoError(t, err)
	raw := map[string][]byte{}
	for _, name := range files {
		if raw[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	if raw["dashboard of a decoder"], err = Decoder("a/decoder's id, longer than Grafana takes", "It's \"odd\"", []Sensor{
		{Key: "it's", Type: `a "type"`, Unit: "°C"}, {Key: "b", Type: "t", Name: "B", Unit: "furlong"},
	}); err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	for name, text := range raw {
		var d dashboard
		strict := json.NewDecoder(bytes.NewReader(text))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if other := uids[d.UID]; other != "" {
			t.Errorf("%s has the uid of %s", name, other)
		}
		uids[d.UID] = name
		for _, problem := range slices.Concat(fieldProblems(d), gridProblems(d), variableProblems(d), datasourceProblems(d, sources)) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// fieldProblems lists the problems of single fields of a dashboard and its panels.
func fieldProblems(d dashboard) (problems []string) {
	if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`).MatchString(d.UID) || d.Title == "" || d.SchemaVersion < 36 || d.SchemaVersion > 41 || d.Time.From == "" || d.Time.To == "" {
		problems = append(problems, fmt.Sprintf("uid %q, title %q, schemaVersion %d, time %v", d.UID, d.Title, d.SchemaVersion, d.Time))
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if p.ID <= 0 || ids[p.ID] || p.Title == "" || p.Options == nil || p.FieldConfig.Overrides == nil || len(p.Targets) == 0 {
			problems = append(problems, fmt.Sprintf("panel %d %q is incomplete, or has another's id", p.ID, p.Title))
		}
		ids[p.ID] = true
		if !slices.Contains([]string{"timeseries", "stat", "table"}, p.Type) {
			problems = append(problems, "unknown type of panel: "+p.Type)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			influx := q.RawQuery && q.Query != "" && q.Expr == "" && (q.ResultFormat == "time_series" || q.ResultFormat == "table")
			metrics := q.Datasource.Type == "prometheus" && q.Expr != "" && q.Query == "" && q.ResultFormat == ""
			if q.RefID == "" || refs[q.RefID] || influx == metrics {
				problems = append(problems, fmt.Sprintf("panel %q: the target %q repeats a refId, or is of both kinds or neither: %q, %q", p.Title, q.RefID, q.Query, q.Expr))
			}
			refs[q.RefID] = true
			if metrics {
				continue // Grafana adds the time range itself
			}
			if !strings.Contains(q.Query, "$timeFilter") {
				problems = append(problems, fmt.Sprintf("panel %q does not use $timeFilter: %s", p.Title, q.Query))
			}
		}
	}
	return problems
}

// gridProblems lists panels that leave the grid or cover another panel.
func gridProblems(d dashboard) (problems []string) {
	taken := map[[2]int]int{}
	for _, p := range d.Panels {
		g := p.GridPos
		if g.W <= 0 || g.H <= 0 || g.X < 0 || g.Y < 0 || g.X+g.W > 24 {
			problems = append(problems, fmt.Sprintf("panel %d leaves the grid: %d by %d at %d, %d", p.ID, g.W, g.H, g.X, g.Y))
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if covered := taken[[2]int{x, y}]; covered != 0 && covered != p.ID {
					return append(problems, fmt.Sprintf("panel %d covers panel %d", p.ID, covered))
				}
				taken[[2]int{x, y}] = p.ID
			}
		}
	}
	return problems
}

// variableProblems lists variables that are used but not defined, or defined but not used.
func variableProblems(d dashboard) (problems []string) {
	defined, used := map[string]bool{}, map[string]bool{}
	use := func(texts ...string) {
		for _, m := range regexp.MustCompile(`\$(?:\{(\w+)|(\w+))`).FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
			name := m[1] + m[2]
			if name == "timeFilter" || strings.HasPrefix(name, "__") {
				continue
			}
			if used[name] = true; !defined[name] {
				problems = append(problems, "$"+name+" is used and not defined before")
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "datasource" && v.Name != "" && v.Current != nil && (v.Query == "influxdb" || v.Query == "prometheus") {
			defined[v.Name], used[v.Name] = true, true // see datasourceProblems
			continue
		}
		if v.Name == "" || defined[v.Name] || v.Type != "query" || v.Refresh != 2 || v.Query != v.Definition {
			problems = append(problems, fmt.Sprintf("variable %q is incomplete, or has another's name: type %q, refresh %d, query %q, definition %q", v.Name, v.Type, v.Refresh, v.Query, v.Definition))
		}
		use(v.Query)
		defined[v.Name] = true
	}
	for _, p := range d.Panels {
		use(p.Title, p.Description)
		if p.Repeat != "" {
			use("$" + p.Repeat)
		}
		for _, q := range p.Targets {
			use(q.Query, q.Expr)
			if remaining := strings.NewReplacer("$measurement", "", "$tag_", "").Replace(q.Alias); strings.Contains(remaining, "$") {
				problems = append(problems, "an alias may use $measurement and $tag_ only: "+q.Alias)
			}
		}
	}
	for name := range defined {
		if !used[name] {
			problems = append(problems, "$"+name+" is defined and not used")
		}
	}
	return problems
}

// datasourceProblems lists references to data sources that are not variables of the right type,
// and variables whose initial value is not provisioned.
func datasourceProblems(d dashboard, sources map[string]string) (problems []string) {
	kinds := make(map[string]string)
	for _, v := range d.Templating.List {
		if v.Type != "datasource" {
			continue
		}
		kinds["${"+v.Name+"}"] = v.Query
		if kind := sources[v.Current.Value]; kind != v.Query {
			problems = append(problems, fmt.Sprintf("variable %s: no data source %q of type %q is provisioned", v.Name, v.Current.Value, v.Query))
		}
		if !slices.ContainsFunc(d.Requires, func(r requirement) bool { return r.ID == v.Query }) {
			problems = append(problems, "the dashboard does not require "+v.Query)
		}
	}
	check := func(label string, s datasource) {
		if kinds[s.UID] != s.Type {
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
