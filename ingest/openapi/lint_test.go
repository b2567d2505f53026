package openapi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// Two independent linters report neither an error nor a warning for the served document.
func TestLintersFindNothing(t *testing.T) {
	encoded, err := merged(t).MarshalJSON()
	relaytest.NoError(t, err)
	document := filepath.Join(t.TempDir(), "openapi.json")
	relaytest.NoError(t, os.WriteFile(document, encoded, 0o600))
	for name, args := range map[string][]string{
		"redocly":  {"lint", "--config", "lint/redocly.yaml", "--max-problems", "1000", document},
		"spectral": {"lint", "--ruleset", "lint/spectral.yaml", "--fail-severity", "hint", document},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join("..", "..", ".tools", "node", "node_modules", ".bin", name)
			if _, err := os.Stat(program); err != nil {
				if _, npm := exec.LookPath("npm"); npm != nil || os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
					t.Skipf("SKIPPED: %s is not installed; with npm, make docs installs it", name)
				}
				t.Fatalf("%s is not installed: run make docs, or set PENSTOCK_TEST_SKIP_REAL=1 to skip this", name)
			}
			cmd := exec.Command(program, args...)
			cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
			output, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, output)
			}
			if warning := regexp.MustCompile(`\d+ warning`).Find(output); warning != nil && string(warning) != "0 warning" {
				t.Errorf("%s reports warnings:\n%s", name, output)
			}
		})
	}
}
