package grafana

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// schemaVersion is the version of the dashboard JSON of Grafana 10 and 11.
const schemaVersion = 39

// Dashboard is a dashboard in the JSON that Grafana provisions from a file or imports in a form. The
// data sources are variables, so that the form needs no inputs.
type Dashboard struct {
	Inputs        []struct{} `json:"__inputs"`
	Requires      []Required `json:"__requires"`
	UID           string     `json:"uid"`
	Title         string     `json:"title"`
	Description   string     `json:"description,omitempty"`
	Tags          []string   `json:"tags"`
	Timezone      string     `json:"timezone"`
	SchemaVersion int        `json:"schemaVersion"`
	Version       int        `json:"version"`
	Editable      bool       `json:"editable"`
	Refresh       string     `json:"refresh"`
	GraphTooltip  int        `json:"graphTooltip"` // 1: one crosshair on all panels
	Time          TimeRange  `json:"time"`
	Links         []Link     `json:"links"`
	Templating    Templating `json:"templating"`
	Annotations   List       `json:"annotations"`
	Panels        []Panel    `json:"panels"`
}

// Required is a requirement of a dashboard: Grafana, or a type of data source.
type Required struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Link links to the other dashboards with a tag.
type Link struct {
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

// DataLink links a value to a URL.
type DataLink struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// TimeRange is the initial time range of a dashboard, such as "now-24h" to "now".
type TimeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// List is an empty list in the form that Grafana expects.
type List struct {
	List []struct{} `json:"list"`
}

// Templating holds the variables of a dashboard.
type Templating struct {
	List []Variable `json:"list"`
}

// Variable is a selection at the top of a dashboard. Its options are the results of a query, or the
// data sources of a type.
type Variable struct {
	Name       string     `json:"name"`
	Label      string     `json:"label"`
	Type       string     `json:"type"` // query or datasource
	Datasource Datasource `json:"datasource,omitzero"`
	Query      string     `json:"query"`
	Definition string     `json:"definition"`
	Refresh    int        `json:"refresh"` // 1: when the dashboard loads; 2: also when the time range changes
	Sort       int        `json:"sort"`    // 1: by name
	Multi      bool       `json:"multi"`
	IncludeAll bool       `json:"includeAll"`
	AllValue   string     `json:"allValue,omitempty"`
	Current    *Choice    `json:"current,omitempty"`
}

// Choice is the initial value of a variable.
type Choice struct {
	Text  string `json:"text"`
	Value string `json:"value"`
}

// Datasource refers to a data source.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Panel is a panel of a dashboard.
type Panel struct {
	ID          int            `json:"id"`
	Type        string         `json:"type"`
	Title       string         `json:"title"`
	Description string         `json:"description,omitempty"`
	GridPos     GridPos        `json:"gridPos"`
	Datasource  Datasource     `json:"datasource"`
	Repeat      string         `json:"repeat,omitempty"` // the variable for whose values the panel is repeated
	Direction   string         `json:"repeatDirection,omitempty"`
	MaxPerRow   int            `json:"maxPerRow,omitempty"`
	Targets     []Target       `json:"targets"`
	Transform   []Transform    `json:"transformations,omitempty"`
	FieldConfig FieldConfig    `json:"fieldConfig"`
	Options     map[string]any `json:"options"`
}

// GridPos is the position and size of a panel. The grid has 24 columns.
type GridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// Target is a query of a panel, for InfluxDB or for Prometheus.
type Target struct {
	RefID        string     `json:"refId"`
	Datasource   Datasource `json:"datasource"`
	Query        string     `json:"query,omitempty"`
	RawQuery     bool       `json:"rawQuery,omitempty"`
	ResultFormat string     `json:"resultFormat,omitempty"` // time_series or table
	Alias        string     `json:"alias,omitempty"`
	// For Prometheus:
	Expr         string `json:"expr,omitempty"`
	LegendFormat string `json:"legendFormat,omitempty"`
	Format       string `json:"format,omitempty"`
	Instant      bool   `json:"instant,omitempty"`
}

// Transform is a transformation of the query results before a panel shows them.
type Transform struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}

// FieldConfig is the presentation of values.
type FieldConfig struct {
	Defaults  FieldDefaults `json:"defaults"`
	Overrides []struct{}    `json:"overrides"`
}

// FieldDefaults are the unit, the range of the scale, the options and the links of all values.
type FieldDefaults struct {
	Unit   string         `json:"unit,omitempty"`
	Min    *float64       `json:"min,omitempty"`
	Max    *float64       `json:"max,omitempty"`
	Custom map[string]any `json:"custom,omitempty"`
	Links  []DataLink     `json:"links,omitempty"`
}

// Encode returns a dashboard as indented JSON.
func Encode(d Dashboard) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return nil, fmt.Errorf("dashboard %s: %w", d.UID, err)
	}
	return b.Bytes(), nil
}

func datasource() Datasource { return Datasource{Type: "influxdb", UID: "${datasource}"} }

// newDashboard returns a dashboard. It numbers the panels and places them from left to right. A
// panel that does not fit begins a new row.
func newDashboard(uid, title, description string, variables []Variable, panels []Panel) Dashboard {
	x, y, rowHeight := 0, 0, 0
	for i := range panels {
		p := &panels[i]
		if x+p.GridPos.W > 24 {
			x, y, rowHeight = 0, y+rowHeight, 0
		}
		p.ID, p.GridPos.X, p.GridPos.Y = i+1, x, y
		x, rowHeight = x+p.GridPos.W, max(rowHeight, p.GridPos.H)
	}
	readings := Variable{
		Name: "datasource", Label: "Readings", Type: "datasource", Query: "influxdb", Refresh: 1,
		Current: &Choice{Text: "Penstock", Value: "penstock"}, // as in datasource.yaml
	}
	return Dashboard{
		Inputs:   []struct{}{},
		Requires: []Required{{"grafana", "grafana", "Grafana", "10.0.0"}, {"datasource", "influxdb", "InfluxDB", "1.0.0"}},
		Links: []Link{{
			Type: "dashboards", Title: "Penstock", Icon: "dashboard", Tags: []string{"penstock"}, AsDropdown: true, IncludeVars: true, KeepTime: true,
			Tooltip: "The other dashboards",
		}},
		UID: uid, Title: title, Description: description, Tags: []string{"penstock"}, Timezone: "browser",
		SchemaVersion: schemaVersion, Version: 1, Editable: true, Refresh: "1m", GraphTooltip: 1,
		Time: TimeRange{From: "now-24h", To: "now"}, Templating: Templating{List: append([]Variable{readings}, variables...)},
		Annotations: List{List: []struct{}{}}, Panels: panels,
	}
}

// variable returns a variable with the values of a tag, of which several can be selected.
func variable(name, label, tag, condition string) Variable {
	q := "SHOW TAG VALUES WITH KEY = " + quote(tag)
	if condition != "" {
		q += " WHERE " + condition
	}
	return Variable{
		Name: name, Label: label, Type: "query", Datasource: datasource(), Query: q, Definition: q,
		Refresh: 2, Sort: 1, Multi: true, IncludeAll: true, AllValue: ".*",
	}
}

// quote returns name as a quoted identifier of InfluxQL.
func quote(name string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(name) + `"`
}

// quoteString returns s as a string literal of InfluxQL.
func quoteString(s string) string {
	return `'` + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s) + `'`
}
