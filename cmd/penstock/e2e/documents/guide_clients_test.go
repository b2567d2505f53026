package documents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestGeneratedClientsWork runs docs/guides/clients.md: its commands generate clients from the OpenAPI
// document of a gateway, and its programs print the records of the gateway.
func TestGeneratedClientsWork(t *testing.T) {
	t.Parallel()
	chapters := strings.Split(e2e.RepositoryFile(t, "docs/guides/clients.md"), "\n## ")
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	g.WithToken("acme-all-0123456").Post("/webhooks/generic?decoder_id=sent", `[{"id":"shed","temperature":5},{"id":"barn","temperature":6}]`).Mentions(t, 200, "temperature")
	want := clientOutput(g)
	languages := 0
	for _, chapter := range chapters[1:] {
		name, _, _ := strings.Cut(chapter, "\n")
		languages++
		t.Run(name, func(t *testing.T) {
			got := followClientGuide(t, g, chapters[0], chapter)
			if !slices.Equal(got, want) {
				t.Errorf("output of the program = %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
	if languages < 3 {
		t.Errorf("languages in the guide = %d, want at least 3", languages)
	}
}

// clientOutput returns the lines that each program of the guide must print.
func clientOutput(g *e2e.Gateway) []string {
	var sims struct {
		Data []struct {
			ICCID string `json:"iccid"`
			State string `json:"current_state"`
		}
	}
	var devices struct {
		Data []struct{ Identifier, Type string }
	}
	e2e.CustomerOf(g).Get("/v3/mno").Decode(g.T, &sims)
	g.WithToken("acme-all-0123456").Get("/iot/devices").Decode(g.T, &devices)
	if len(sims.Data) < 3 || len(devices.Data) != 2 {
		g.T.Fatalf("SIMs = %d, devices = %d, want at least 3 and 2", len(sims.Data), len(devices.Data))
	}
	lines := []string{"sent 447700900123 Hello"}
	for _, sim := range sims.Data {
		lines = append(lines, fmt.Sprintf("SIM %s %s", sim.ICCID, sim.State))
	}
	for _, device := range devices.Data {
		lines = append(lines, fmt.Sprintf("device %s %s", device.Identifier, device.Type))
	}
	return append(lines, "refused 422 destinations")
}

// followClientGuide writes the files of a chapter, runs the commands of the introduction and of the
// chapter, and returns the lines that the last command prints. It skips commands that install packages,
// because the packages are already installed.
func followClientGuide(t *testing.T, g *e2e.Gateway, intro, chapter string) []string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range regexp.MustCompile("(?s)`([a-z.-]+)`:\n\n```[a-z]+\n(.*?)```").FindAllStringSubmatch(chapter, -1) {
		relaytest.NoError(t, os.WriteFile(filepath.Join(dir, file[1]), []byte(file[2]), 0o600))
	}
	tools := clientTools(t, dir, chapter)
	steps := slices.DeleteFunc(append(shellLines(intro), shellLines(chapter)...), isInstall)
	run := func(script string) string {
		c := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
		c.Dir = dir
		c.Env = append(os.Environ(), "PATH="+dir+":"+tools+":"+os.Getenv("PATH"), "PENSTOCK_URL="+g.URL(), "PENSTOCK_TOKEN=acme-all-0123456", "GOFLAGS=-trimpath", "GOWORK=off")
		var stderr strings.Builder
		c.Stderr = &stderr
		stdout, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", script, err, stdout, stderr.String())
		}
		return string(stdout)
	}
	lastIndex := len(steps) - 1
	run(strings.Join(steps[:lastIndex], "\n"))
	return strings.Split(strings.TrimSpace(run(steps[lastIndex])), "\n")
}

// shellLines returns the commands in the sh blocks of a text.
func shellLines(text string) (lines []string) {
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		lines = append(lines, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	return lines
}

func isInstall(line string) bool {
	return strings.HasPrefix(line, "go install ") || strings.HasPrefix(line, "npm install ") || strings.HasPrefix(line, "pip install ")
}

// clientTools links the modules of npm into a folder, and returns the folder of installed programs. It
// fails the test unless deploy/test-deps.sh installs the packages of the chapter.
func clientTools(t *testing.T, dir, chapter string) string {
	t.Helper()
	tools := relaytest.Must(filepath.Abs(filepath.Join(e2e.Root(t), ".tools")))(t)
	script := e2e.RepositoryFile(t, "deploy/test-deps.sh")
	for _, line := range slices.DeleteFunc(shellLines(chapter), func(line string) bool { return !isInstall(line) }) {
		if strings.HasPrefix(line, "pip ") {
			debianPython(t, dir)
			continue
		}
		for _, module := range strings.Fields(line)[2:] {
			if strings.HasPrefix(module, "--") {
				continue
			}
			if !strings.Contains(script, module) {
				t.Errorf("the guide installs %s, but deploy/test-deps.sh does not", module)
			}
			path := filepath.Join(tools, "node", "node_modules", module[:max(strings.LastIndex(module, "@"), 0)])
			if strings.HasPrefix(line, "go ") {
				path = filepath.Join(tools, "bin", "oapi-codegen")
			}
			if _, err := os.Stat(path); err != nil {
				failNotInstalled(t, module)
			}
		}
	}
	relaytest.NoError(t, os.Symlink(filepath.Join(tools, "node", "node_modules"), filepath.Join(dir, "node_modules")))
	return filepath.Join(tools, "bin")
}

// debianPython links the Python of Debian with its modules into a folder.
func debianPython(t *testing.T, dir string) {
	t.Helper()
	const python = "/usr/bin/python3"
	if output, err := exec.CommandContext(t.Context(), python, "-c", "import certifi, dateutil, six, urllib3").CombinedOutput(); err != nil {
		failNotInstalled(t, fmt.Sprintf("a module of Python: %v %s", err, output))
	}
	relaytest.NoError(t, os.Symlink(python, filepath.Join(dir, "python3")))
}

// failNotInstalled fails the test because a dependency is missing, or skips the test if
// PENSTOCK_TEST_SKIP_REAL=1.
func failNotInstalled(t *testing.T, dependency string) {
	t.Helper()
	if os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
		t.Skipf("skipped: PENSTOCK_TEST_SKIP_REAL=1 and not installed: %s", dependency)
	}
	t.Fatalf("not installed: %s; make deps installs it, PENSTOCK_TEST_SKIP_REAL=1 skips the test", dependency)
}
