package failures

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// TestChaos is a short `make chaos`: it posts to every interface while gateways, back ends, the SMSC and
// the endpoint fail. Afterwards every acknowledged request is stored and processed exactly once.
// PENSTOCK_TEST_SEED selects other faults.
func TestChaos(t *testing.T) {
	t.Parallel()
	e2e.SoakOnly(t, "TestKillLosesNothing, TestOutageLosesNothing and TestFaultsLoseNothing cover each kind of fault once")
	for _, backends := range []string{"sqlite", "postgres"} {
		t.Run(backends, func(t *testing.T) {
			t.Parallel()
			runChaos(t, backends, 10, time.Minute)
		})
	}
}

// TestFaultsLoseNothing makes back ends fail under the load of `make chaos`: each fault once, three
// times in a soak, or PENSTOCK_TEST_FAULTS times. It kills single servers only in a soak, because
// TestOutageLosesNothing also stops single servers.
func TestFaultsLoseNothing(t *testing.T) {
	t.Parallel()
	rounds := e2e.Rounds(t, "PENSTOCK_TEST_FAULTS", 1, 3)
	for _, tc := range []struct {
		backends           string
		faults, soakFaults []string
	}{
		{"postgres", []string{"Redis is emptied"}, []string{"Redis is killed", "PostgreSQL is killed"}},
		{"sentinel", []string{"Redis's master is killed .Sentinel.", "PostgreSQL's primary is lost, the standby promoted"}, []string{"Redis fails over as planned .Sentinel."}},
	} {
		if e2e.Soak() {
			tc.faults = append(tc.faults, tc.soakFaults...)
		}
		t.Run(tc.backends, func(t *testing.T) {
			t.Parallel()
			count := rounds * len(tc.faults)
			runChaos(t, tc.backends, count, time.Duration(count)*8*time.Second, "-rate", "75", "-only", "^("+strings.Join(tc.faults, "|")+")$")
		})
	}
}

// runChaos runs deploy/chaos, which spreads a number of faults on a set of back ends over a
// duration.
func runChaos(t *testing.T, backends string, faults int, duration time.Duration, flags ...string) {
	t.Helper()
	programs := map[string][]string{
		"postgres": {"/usr/lib/postgresql/*/bin/postgres", "redis-server", "redis-cli", "influxd"},
		"sentinel": {"/usr/lib/postgresql/*/bin/postgres", "redis-server", "redis-cli", "redis-sentinel", "influxd"},
	}
	for _, name := range programs[backends] {
		found, _ := filepath.Glob(name)
		if _, err := exec.LookPath(name); err != nil && len(found) == 0 && os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
			t.Skipf("%s is not installed and PENSTOCK_TEST_SKIP_REAL=1", name)
		}
	}
	seed := e2e.NumberFromEnv(t, "PENSTOCK_TEST_SEED", 1)
	cmd := exec.Command(buildChaos(t), append([]string{
		"-binary", os.Args[0], "-backends", backends, "-seed", fmt.Sprint(seed), "-duration", duration.String(), "-faults", fmt.Sprint(faults),
		"-rate", "25", "-frames", "25", "-hold", "3s",
	}, flags...)...)
	cmd.Env = e2e.BareEnvironment()
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	t.Logf("%s", output)
}

// buildChaos builds deploy/chaos. It uses the race detector if this test does, because the compiled
// packages are then in the build cache.
func buildChaos(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "chaos")
	args := []string{"build", "-o", program}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	if output, err := exec.Command("go", append(args, filepath.Join(e2e.Root(t), "deploy", "chaos"))...).CombinedOutput(); err != nil {
		t.Fatalf("cannot build deploy/chaos: %v\n%s", err, output)
	}
	return program
}
