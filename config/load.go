package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/penstock/penstock/config/strict"
)

// Load reads the file, unless path is empty, and the environment, as os.Environ returns it. Its
// error contains strict.Mistakes with all mistakes of the settings.
func Load(path string, environ []string) (Config, error) {
	var data []byte
	if path != "" {
		var err error
		if data, err = os.ReadFile(path); err != nil {
			return Config{}, fmt.Errorf("config: %w", err)
		}
	}
	c, err := Parse(data, environ)
	if mistakes, ok := errors.AsType[strict.Mistakes](err); ok && path != "" {
		return Config{}, fmt.Errorf("config %s:\n%w", path, mistakes)
	} else if err != nil {
		return Config{}, fmt.Errorf("config:\n%w", err)
	}
	return c, nil
}

// Parse is like Load with the content of the file.
func Parse(file []byte, environ []string) (Config, error) {
	c := Default()
	mistakes := strict.Decode(file, &c, options())
	readEnvironment(&c, environ, &mistakes)
	c.derive()
	c.validate(&mistakes)
	if len(mistakes) > 0 {
		return Config{}, withVariables(mistakes)
	}
	return c, nil
}

// readEnvironment applies the environment variables and adds their mistakes. The mistakes of
// the file stay, even if a variable overrides the setting.
func readEnvironment(c *Config, environ []string, mistakes *strict.Mistakes) {
	allSettings := settings(c)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		i := slices.IndexFunc(allSettings, func(s setting) bool { return s.variable == name })
		if i < 0 || name == "" || value == "" {
			continue
		}
		s := allSettings[i]
		for _, m := range strict.Text(value, s.value.Addr().Interface(), options()) {
			mistakes.Add(s.key+m.Path, "%s", m.Text)
		}
	}
}

// ServerVariable is the variable with the URL of the gateway for client commands. It is not a
// setting of the gateway.
const ServerVariable = "PENSTOCK_SERVER"

// UnknownVariables returns a warning for each variable with the prefix of settings that is not a
// setting: "PENSTOCK_LISTN: unknown; did you mean PENSTOCK_LISTEN?". It ignores variables
// without a value and the variables of the project's tests.
func UnknownVariables(environ []string) (warnings []string) {
	var blank Config
	names := []string{ServerVariable}
	for _, s := range settings(&blank) {
		if s.variable != "" {
			names = append(names, s.variable)
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" || !strings.HasPrefix(name, variablePrefix) || strings.HasPrefix(name, testPrefix) || slices.Contains(names, name) {
			continue
		}
		warning := name + ": unknown"
		if nearest, ok := strict.Nearest(name, names); ok {
			warning += "; did you mean " + nearest + "?"
		}
		warnings = append(warnings, warning)
	}
	return warnings
}

// withVariables adds the name of the variable to the path of each mistake.
func withVariables(mistakes strict.Mistakes) strict.Mistakes {
	var blank Config
	allSettings := settings(&blank)
	for i, m := range mistakes {
		key, _, _ := strings.Cut(m.Path, "[")
		for _, s := range allSettings {
			if s.key == key && s.variable != "" {
				mistakes[i].Path += " (" + s.variable + ")"
			}
		}
	}
	return mistakes
}
