package netserver

import (
	"fmt"
	"strings"
)

// joinValues joins the values of those names that are there, as "batt 3.5, temp 21".
func joinValues(values map[string]any, names ...string) string {
	var parts []string
	for _, name := range names {
		if v, ok := values[name]; ok && v != nil && v != "" {
			parts = append(parts, fmt.Sprintf("%s %v", name, v))
		}
	}
	s := strings.Join(parts, ", ")
	const most = 500
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "")
	}
	return s
}
