package grafana

// size is the width and height of a panel on the grid.
type size struct{ w, h int }

func panel(kind, title, unit string, s size, targets ...Target) Panel {
	for i := range targets {
		targets[i].RefID = string(rune('A' + i))
	}
	return Panel{
		Type: kind, Title: title, GridPos: GridPos{H: s.h, W: s.w}, Datasource: datasource(), Targets: targets,
		FieldConfig: FieldConfig{Defaults: FieldDefaults{Unit: unit}, Overrides: []struct{}{}},
		Options:     map[string]any{},
	}
}

// graph returns a panel that shows values over time.
func graph(title, unit string, s size, targets ...Target) Panel {
	p := panel("timeseries", title, unit, s, targets...)
	p.FieldConfig.Defaults.Custom = map[string]any{"drawStyle": "line", "fillOpacity": 10, "showPoints": "auto", "spanNulls": true}
	p.Options = map[string]any{
		"legend":  map[string]any{"displayMode": "table", "placement": "bottom", "showLegend": true, "calcs": []string{"lastNotNull"}},
		"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
	}
	return p
}

// table returns a panel that shows rows in the order of the column sortBy.
func table(title string, s size, sortBy string, descending bool, target Target) Panel {
	target.ResultFormat = "table"
	p := panel("table", title, "", s, target)
	p.Options = map[string]any{
		"showHeader": true,
		"sortBy":     []map[string]any{{"displayName": sortBy, "desc": descending}},
	}
	return p
}

// named adds the name in each device's last frame to a table of devices. Readings have only the
// identifier as a tag because a tag with the name would begin a new series for each new name.
func (p Panel) named(condition string) Panel {
	names := query(`SELECT last("name") AS "name" FROM "uplink" WHERE `+condition+` GROUP BY "identifier"`, "")
	names.RefID, names.ResultFormat = string(rune('A'+len(p.Targets))), "table"
	p.Targets = append(p.Targets, names)
	p.Transform = []Transform{
		{ID: "joinByField", Options: map[string]any{"byField": "identifier", "mode": "outerTabular"}},
		{ID: "organize", Options: map[string]any{
			"excludeByName": map[string]bool{"Time 2": true},
			"renameByName":  map[string]string{"Time 1": "Time"},
		}},
	}
	return p
}

// query returns a target for an InfluxQL query. alias is the name of the lines.
func query(q, alias string) Target {
	return Target{Datasource: datasource(), Query: q, RawQuery: true, ResultFormat: "time_series", Alias: alias}
}

// numbersAndTexts returns queries for the means of a sensor's values over time, and for the numbers
// of its texts, which a graph cannot show.
func numbersAndTexts(measurement, condition, number, texts string) []Target {
	return []Target{
		query(`SELECT mean("value") FROM `+measurement+` WHERE `+condition, number),
		query(`SELECT count("text") FROM `+measurement+` WHERE `+condition, texts),
	}
}
