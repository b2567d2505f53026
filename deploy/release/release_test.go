// Package release_test builds a release as deploy/release/release.sh does, compares two
// builds, and leads the Debian package through its life.
package release_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock/penstock/relay/relaytest"
)

// nfpm returns the program that make deps installs. Without it the test fails, or is
// skipped when PENSTOCK_TEST_SKIP_REAL=1 says so.
func nfpm(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../.tools/bin/nfpm")
	relaytest.NoError(t, err)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
		t.Skip("SKIPPED: .tools/bin/nfpm is missing; make deps installs it")
	}
	t.Fatal(".tools/bin/nfpm is missing: run make deps, or set PENSTOCK_TEST_SKIP_REAL=1 to skip this test")
	return ""
}

// clone checks the present commit out into a directory of its own.
func clone(t *testing.T) string {
	t.Helper()
	if err := exec.Command("git", "-C", "../..", "rev-parse", "HEAD").Run(); err != nil {
		t.Skip("SKIPPED: a release is built from a Git checkout, and this is none")
	}
	dir := filepath.Join(t.TempDir(), "penstock")
	if out, err := exec.Command("git", "clone", "-q", "--no-local", "../..", dir).CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	return dir
}

// build runs the release script in a clone and returns the folder it fills.
func build(t *testing.T, dir string, environ ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(filepath.Join(dir, "deploy", "release", "release.sh"), out)
	cmd.Env = append(os.Environ(), "NFPM="+nfpm(t), "RELEASE_ARCHES="+runtime.GOARCH)
	cmd.Env = append(cmd.Env, environ...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("release.sh: %v\n%s", err, text)
	}
	return out
}

// released builds the present commit once for all tests.
func released(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: releases are built on Linux")
	}
	once.Do(func() {
		dir, err := os.MkdirTemp("", "penstock-release")
		relaytest.NoError(t, err)
		built = filepath.Join(dir, "out")
		relaytest.NoError(t, os.Rename(build(t, clone(t)), built))
	})
	if built == "" {
		t.Fatal("the release was not built")
	}
	return built
}

var (
	once  sync.Once
	built string
)

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

// Two clones in different directories, under different settings of the machine, give
// the same hashes. Both use the machine's build cache, so what differs is linked and
// packed twice; PENSTOCK_TEST_COLD=1 compiles everything anew for the second.
func TestTheSameCommitGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	other := []string{"TZ=Pacific/Auckland", "LC_ALL=C.UTF-8", "GOFLAGS=-p=1", "GOAMD64=v3"}
	if os.Getenv("PENSTOCK_TEST_COLD") == "1" {
		other = append(other, "GOCACHE="+t.TempDir())
	}
	second := build(t, clone(t), other...)
	first := released(t) // built beside it
	if diff := cmp.Diff(sums(t, first), sums(t, second)); diff != "" {
		t.Errorf("two builds of one commit differ (-first +second):\n%s", diff)
	}
	if out, err := run(first, "sha256sum", "--check", "--strict", "SHA256SUMS"); err != nil {
		t.Errorf("SHA256SUMS does not hold: %v\n%s", err, out)
	}
}

// sums reads SHA256SUMS: hashes by name of file.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "SHA256SUMS"))
	relaytest.NoError(t, err)
	defer f.Close()
	list := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		hash, name, _ := strings.Cut(s.Text(), "  ")
		list[name] = hash
	}
	if len(list) != 3 {
		t.Fatalf("a release of one architecture has a binary, an SBOM and a package, and this one has %v", list)
	}
	return list
}

func run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTheBinaryIsStaticAndNamesItsCommit(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(released(t), "penstock-linux-"+runtime.GOARCH)
	if out, err := run(".", "ldd", binary); err == nil {
		t.Errorf("the binary needs libraries of the system:\n%s", out)
	}
	commit, err := run("../..", "git", "rev-parse", "HEAD")
	relaytest.NoError(t, err)
	if out, err := run(".", binary, "version"); err != nil || !strings.Contains(out, strings.TrimSpace(commit)) {
		t.Errorf("penstock version: %v: %q, want the commit %s", err, out, commit)
	}
}

// Every requirement of go.mod that the program links stands in the SBOM.
func TestTheSBOMListsEveryModule(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(released(t), "penstock-linux-"+runtime.GOARCH+".cdx.json"))
	relaytest.NoError(t, err)
	var bom struct {
		BOMFormat, SpecVersion string
		Components             []struct{ Name, Version, Purl string }
	}
	relaytest.NoError(t, json.Unmarshal(data, &bom))
	if bom.BOMFormat != "CycloneDX" || bom.SpecVersion != "1.6" {
		t.Errorf("the SBOM is %s %s", bom.BOMFormat, bom.SpecVersion)
	}
	listed := map[string]bool{}
	for _, c := range bom.Components {
		listed[c.Name+" "+c.Version] = true
		if want := fmt.Sprintf("pkg:golang/%s@", c.Name); !strings.HasPrefix(c.Purl, want) {
			t.Errorf("%s has the package URL %q", c.Name, c.Purl)
		}
	}
	linked, err := run("../..", "go", "list", "-deps", "-f", "{{with .Module}}{{if .Version}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/penstock")
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, linked)
	}
	for _, module := range strings.Fields(strings.ReplaceAll(linked, " ", "@")) {
		if name := strings.Replace(module, "@", " ", 1); !listed[name] {
			t.Errorf("the SBOM misses %s", name)
		}
	}
}
