// Package release_test builds releases with release.sh, compares two builds, and installs, upgrades
// and removes the Debian package.
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

// nfpm returns the path of the program nfpm, which make deps installs. If nfpm is missing, the test
// fails, or is skipped with PENSTOCK_TEST_SKIP_REAL=1.
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

// clone clones the repository into a new directory, with the current commit checked out.
func clone(t *testing.T) string {
	t.Helper()
	if err := exec.Command("git", "-C", "../..", "rev-parse", "HEAD").Run(); err != nil {
		t.Skip("SKIPPED: a release is built from a Git checkout, and this directory is not in one")
	}
	dir := filepath.Join(t.TempDir(), "penstock")
	if output, err := exec.Command("git", "clone", "-q", "--no-local", "../..", dir).CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v\n%s", err, output)
	}
	return dir
}

// build runs the release script in a clone, with additional environment variables, and returns the
// directory of the release.
func build(t *testing.T, dir string, environ ...string) string {
	t.Helper()
	releaseDir := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(filepath.Join(dir, "deploy", "release", "release.sh"), releaseDir)
	cmd.Env = append(os.Environ(), "NFPM="+nfpm(t), "RELEASE_ARCHES="+runtime.GOARCH)
	cmd.Env = append(cmd.Env, environ...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("release.sh: %v\n%s", err, text)
	}
	return releaseDir
}

// released builds the current commit once for all tests and returns the directory of the release.
func released(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: releases are built on Linux")
	}
	buildOnce.Do(func() {
		dir, err := os.MkdirTemp("", "penstock-release")
		relaytest.NoError(t, err)
		sharedRelease = filepath.Join(dir, "out")
		relaytest.NoError(t, os.Rename(build(t, clone(t)), sharedRelease))
	})
	if sharedRelease == "" {
		t.Fatal("the release was not built")
	}
	return sharedRelease
}

var (
	buildOnce     sync.Once
	sharedRelease string
)

func TestMain(m *testing.M) {
	code := m.Run()
	if sharedRelease != "" {
		os.RemoveAll(filepath.Dir(sharedRelease))
	}
	os.Exit(code)
}

// Builds in two directories with different environments have the same hashes. Both use the
// machine's build cache, so only linking and packaging are repeated. With PENSTOCK_TEST_COLD=1 the
// second build has an empty cache.
func TestTheSameCommitGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	environ := []string{"TZ=Pacific/Auckland", "LC_ALL=C.UTF-8", "GOFLAGS=-p=1", "GOAMD64=v3"}
	if os.Getenv("PENSTOCK_TEST_COLD") == "1" {
		environ = append(environ, "GOCACHE="+t.TempDir())
	}
	release2 := build(t, clone(t), environ...)
	release1 := released(t)
	if diff := cmp.Diff(sums(t, release1), sums(t, release2)); diff != "" {
		t.Errorf("two builds of one commit differ (-release1 +release2):\n%s", diff)
	}
	if output, err := run(release1, "sha256sum", "--check", "--strict", "SHA256SUMS"); err != nil {
		t.Errorf("SHA256SUMS does not match the files: %v\n%s", err, output)
	}
}

// sums returns the hashes in SHA256SUMS by file name.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "SHA256SUMS"))
	relaytest.NoError(t, err)
	defer f.Close()
	hashes := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		hash, name, _ := strings.Cut(s.Text(), "  ")
		hashes[name] = hash
	}
	if len(hashes) != 3 {
		t.Fatalf("SHA256SUMS has %v, want a binary, an SBOM and a package", hashes)
	}
	return hashes
}

func run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func TestTheBinaryIsStaticAndNamesItsCommit(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(released(t), "penstock-linux-"+runtime.GOARCH)
	if output, err := run(".", "ldd", binary); err == nil {
		t.Errorf("the binary is linked to libraries of the system:\n%s", output)
	}
	commit, err := run("../..", "git", "rev-parse", "HEAD")
	relaytest.NoError(t, err)
	if output, err := run(".", binary, "version"); err != nil || !strings.Contains(output, strings.TrimSpace(commit)) {
		t.Errorf("penstock version: %v: %q, want the commit %s", err, output, commit)
	}
}

// Every module that the program links is in the SBOM.
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
		t.Errorf("the SBOM has the format %s %s, want CycloneDX 1.6", bom.BOMFormat, bom.SpecVersion)
	}
	listed := map[string]bool{}
	for _, c := range bom.Components {
		listed[c.Name+" "+c.Version] = true
		if want := fmt.Sprintf("pkg:golang/%s@", c.Name); !strings.HasPrefix(c.Purl, want) {
			t.Errorf("%s has the package URL %q, want the prefix %q", c.Name, c.Purl, want)
		}
	}
	linked, err := run("../..", "go", "list", "-deps", "-f", "{{with .Module}}{{if .Version}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/penstock")
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, linked)
	}
	for _, module := range strings.Fields(strings.ReplaceAll(linked, " ", "@")) {
		if name := strings.Replace(module, "@", " ", 1); !listed[name] {
			t.Errorf("the SBOM does not list %s", name)
		}
	}
}
