// Package grafana makes the dashboard of a decoder's sensors, as Grafana's dashboard JSON
// (schemaVersion 39, Grafana 10 and 11). The other dashboards ship in the folder dashboards.
//
// The queries are InfluxQL over the measurements that the gateway writes. There is one
// measurement for each sensor type, with the fields value and text and the tags account,
// device_id, identifier, sensor_id and key. The measurement uplink has the radio data of
// frames and the names of devices.
package grafana

import (
	"bytes"
	_ "embed" // the template
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
)

//go:embed decoder.json.tmpl
var decoderTemplate string

// Sensor is a key of a decoder's values and the sensor type that it is mapped to.
type Sensor struct {
	Key  string
	Type string // id of the sensor type, which is the name of the measurement
	Name string // of the sensor type; empty means its id
	Unit string // as users write it, for example "°C"
}

// panelPair has the values for the two panels of a sensor: a graph with a line for each
// device, and a table of the latest values with the names of the devices.
type panelPair struct {
	GraphID, TableID, Y           int
	Title, Unit                   string
	Numbers, Texts, Latest, Names string // queries
}

const (
	selectedAccounts = `"account" =~ /^$account$/`
	selectedDevices  = `$timeFilter AND ` + selectedAccounts + ` AND "identifier" =~ /^$device$/`
	panelHeight      = 8 // as in the template
)

// Decoder returns a dashboard of at least one sensor, as a file that Grafana imports.
func Decoder(id, name string, sensors []Sensor) ([]byte, error) {
	panels, keys := make([]panelPair, len(sensors)), make([]string, len(sensors))
	for i, s := range sensors {
		if s.Name == "" {
			s.Name = s.Type
		}
		keys[i] = `"key" = ` + quoteString(s.Key)
		readings := quoteName(s.Type) + ` WHERE ` + selectedDevices + ` AND ` + keys[i]
		perInterval := readings + ` GROUP BY time($__interval), "identifier" fill(none)`
		panels[i] = panelPair{
			GraphID: 2*i + 1, TableID: 2*i + 2, Y: panelHeight * i, Title: s.Name + ": " + s.Key, Unit: grafanaUnit(s.Unit),
			Numbers: `SELECT mean("value") FROM ` + perInterval,
			Texts:   `SELECT count("text") FROM ` + perInterval, // a line cannot show texts
			Latest:  `SELECT last(*) FROM ` + readings + ` GROUP BY "identifier"`,
			// Readings have no name, so that a renamed device does not begin a new series.
			Names: `SELECT last("name") AS "name" FROM "uplink" WHERE ` + selectedDevices + ` GROUP BY "identifier"`,
		}
	}
	t, err := template.New("dashboard").Funcs(template.FuncMap{"json": encode}).Parse(decoderTemplate)
	if err != nil {
		return nil, err
	}
	var text, indented bytes.Buffer
	err = t.Execute(&text, map[string]any{
		"UID": dashboardUID(id), "ID": id, "Name": name, "Panels": panels,
		"Accounts": `SHOW TAG VALUES WITH KEY = "account"`,
		"Devices":  `SHOW TAG VALUES WITH KEY = "identifier" WHERE ` + selectedAccounts + ` AND (` + strings.Join(keys, " OR ") + `)`,
	})
	if err == nil {
		err = json.Indent(&indented, text.Bytes(), "", "  ")
	}
	if err != nil {
		return nil, fmt.Errorf("dashboard of decoder %s: %w", id, err)
	}
	return indented.Bytes(), nil
}

// encode returns a string as JSON.
func encode(s string) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return strings.TrimSpace(b.String()), err
}

// dashboardUID returns a uid of at most 40 letters, digits, hyphens and underscores: Grafana
// accepts no others.
func dashboardUID(decoderID string) string {
	uid := []byte("penstock-decoder-")
	for i := 0; i < len(decoderID) && len(uid) < 40; i++ {
		c := decoderID[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_') {
			c = '-'
		}
		uid = append(uid, c)
	}
	return string(uid)
}

// grafanaUnit returns Grafana's name of a unit, or a suffix with the unit itself.
func grafanaUnit(unit string) string {
	names := map[string]string{
		"": "", "°C": "celsius", "°F": "fahrenheit", "K": "kelvin", "%": "percent", "%RH": "humidity",
		"hPa": "pressurehpa", "bar": "pressurebar", "Pa": "pressurepa", "kPa": "pressurekpa",
		"V": "volt", "mV": "mvolt", "A": "amp", "mA": "mamp", "W": "watt", "kW": "kwatt", "Wh": "watth", "kWh": "kwatth",
		"m": "lengthm", "mm": "lengthmm", "km": "lengthkm", "ppm": "ppm", "lx": "lux", "dB": "dB", "dBm": "dBm",
		"s": "s", "ms": "ms", "m/s": "velocityms", "km/h": "velocitykmh", "°": "degree", "l": "litre", "L": "litre", "m³": "m3",
	}
	if name, ok := names[unit]; ok {
		return name
	}
	return "suffix: " + unit
}

// quoteName quotes an identifier of InfluxQL.
func quoteName(name string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(name) + `"`
}

// quoteString quotes a string of InfluxQL.
func quoteString(s string) string {
	return `'` + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s) + `'`
}
