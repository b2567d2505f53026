package failures

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// TestChaos is `make chaos` in short: load over every way in while gateways, back
// ends, the SMSC and the endpoint fail, and afterwards everything that was
// acknowledged is there, done, and as often as it was sent. PENSTOCK_TEST_SEED
// selects other faults.
func TestChaos(t *testing.T) {
	t.Parallel()
	e2e.SoakOnly(t, "TestKillLosesNothing, TestOutageLosesNothing and TestFaultsLoseNothing see each kind of fault once")
	program := buildChaos(t)
	seed := e2e.NumberFromEnv(t, "PENSTOCK_TEST_SEED", 1)
	for _, tc := range []struct {
		backends string
		programs []string // that it needs besides ours
	}{
		{"sqlite", nil},
		{"postgres", []string{"/usr/lib/postgresql/*/bin/postgres", "redis-server", "influxd"}},
	} {
		t.Run(tc.backends, func(t *testing.T) {
			t.Parallel()
			for _, name := range tc.programs {
				found, _ := filepath.Glob(name)
				if _, err := exec.LookPath(name); err != nil && len(found) == 0 && os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
					t.Skipf("%s is not installed and PENSTOCK_TEST_SKIP_REAL=1", name)
				}
			}
			cmd := exec.Command(program, "-binary", os.Args[0], "-backends", tc.backends, "-seed", fmt.Sprint(seed),
				"-duration", "1m", "-faults", "10", "-rate", "25", "-frames", "25", "-hold", "3s")
			cmd.Env = e2e.BareEnvironment()
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v", err)
			}
			t.Logf("%s", out)
		})
	}
}

// buildChaos builds deploy/chaos, under the race detector if the tests run so: its
// packages are compiled already.
func buildChaos(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "chaos")
	args := []string{"build", "-o", program}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, filepath.Join(e2e.Root(t), "deploy", "chaos"))...).CombinedOutput(); err != nil {
		t.Fatalf("cannot build deploy/chaos: %v\n%s", err, out)
	}
	return program
}
