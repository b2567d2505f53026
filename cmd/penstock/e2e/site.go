// Package e2e is the harness of the end-to-end tests: it starts gateways in this process
// or in processes of their own, on embedded back ends or on real servers, and has the
// clients, peers and fixtures that the folders below it share.
//
// Each folder tests one subject. Its TestMain calls Main, which lets the test binary act
// as the program, and its TestGateway runs the suites of the subject on every site.
package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/app"
	"github.com/penstock/penstock/delivery/email/smtptest"
	"github.com/penstock/penstock/delivery/influx/influxtest"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sqlstore/sqltest"
)

// Random returns the random numbers of a test that kills gateways, and logs their seed.
// PENSTOCK_TEST_SEED repeats those of another run.
func Random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := NumberFromEnv(t, "PENSTOCK_TEST_SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("PENSTOCK_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(uint64(seed), 0))
}

// NumberFromEnv reads a number from an environment variable; an empty one is the default.
func NumberFromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// ActAsProgram is the environment variable that makes the test binary act as the program.
const ActAsProgram = "RUN_AS_PENSTOCK"

// Exit codes of the program's commands.
const (
	ExitDone   = 0
	ExitFailed = 1
)

// Names of the files in a gateway's data directory.
const (
	AdminTokenFile = "admin-token"
	DemoTokenFile  = "demo-token"
	NodeFile       = "node"
	LedgerKeyFile  = "ledger-key"
	HeadsFile      = "ledger-heads"
	DatabaseFile   = "database"
	TrafficFile    = "traffic.ring"
)

// Main runs the tests of a folder, or the program itself: the test binary acts as the
// program in the processes that Spawn starts. It does not return.
func Main(m *testing.M) {
	if os.Getenv(ActAsProgram) == "1" {
		app.Main("test")
	}
	os.Exit(m.Run())
}

// Root returns the folder of the repository.
func Root(t testing.TB) string {
	t.Helper()
	dir := relaytest.Must(os.Getwd())(t)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			t.Fatal("the tests do not run in the repository")
		}
		dir = above
	}
}

// File returns the path of a file in testdata: of the package under test, or else
// of this package.
func File(t testing.TB, name string) string {
	t.Helper()
	own := filepath.Join("testdata", name)
	if found, _ := filepath.Glob(own); len(found) > 0 {
		return own
	}
	return filepath.Join(Root(t), "cmd", "penstock", "e2e", "testdata", name)
}

// Site has the back ends of gateways: the embedded ones, or a PostgreSQL, a Redis, an
// InfluxDB and an SMTP server that the test started. Each gateway gets stores of its own.
type Site struct {
	T        *testing.T
	Name     string
	Postgres *sqltest.Postgres
	Redis    *redistest.Server
	Influx   *influxtest.Server
	SMTP     *smtptest.Server
	stores   atomic.Int64
	// clustered makes Start run several gateways on the same stores.
	clustered bool
}

// Embedded returns the site of gateways with embedded back ends.
func Embedded() *Site { return &Site{Name: "embedded"} }

// Suites are tests, by name, that run on every site.
type Suites map[string]func(*testing.T, *Site)

// RunSuites runs suites in parallel on the embedded back ends, and again on real servers
// that the suites share.
func RunSuites(t *testing.T, suites Suites) {
	t.Helper()
	OnEverySite(t, func(t *testing.T, s *Site) {
		for name, run := range suites {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, s)
			})
		}
	})
}

// OnEverySite runs a test on the embedded back ends and again on real servers.
func OnEverySite(t *testing.T, test func(t *testing.T, s *Site)) {
	t.Run("embedded", func(t *testing.T) { test(t, Embedded()) })
	t.Run("real", func(t *testing.T) { test(t, RealSite(t)) })
}

// RepeatOnEverySite is OnEverySite, in parallel, for a test that does something a number of
// times: as often as an environment variable says, or by default times.
func RepeatOnEverySite(t *testing.T, variable string, times int, test func(t *testing.T, s *Site, times int)) {
	t.Parallel()
	times = NumberFromEnv(t, variable, times)
	OnEverySite(t, func(t *testing.T, s *Site) {
		t.Parallel()
		test(t, s, times)
	})
}

// RealSite starts servers. A missing program fails the test, or skips it when
// PENSTOCK_TEST_SKIP_REAL=1 says so.
func RealSite(t *testing.T) *Site {
	t.Helper()
	return &Site{
		T: t, Name: "real", Postgres: sqltest.StartPostgres(t), Redis: redistest.Start(t, "--databases", "100"),
		Influx: influxtest.Start(t, influxtest.Options{}), SMTP: smtptest.Start(t),
	}
}

// BackEnd is a server of a site that a test stops and starts again.
type BackEnd struct {
	Name, Check string // Check is its name in /readyz
	Stop, Start func(t *testing.T, s *Site)
}

// BackEnds are the servers that a real site's gateways need.
func BackEnds() []BackEnd {
	return []BackEnd{
		{"PostgreSQL", "records", func(_ *testing.T, s *Site) { s.Postgres.Kill() }, func(_ *testing.T, s *Site) { s.Postgres.Start() }},
		{"Redis", "queue", func(_ *testing.T, s *Site) { s.Redis.Stop() }, func(_ *testing.T, s *Site) { s.Redis.Restart() }},
		{"InfluxDB", "readings", func(_ *testing.T, s *Site) { s.Influx.Stop() }, func(t *testing.T, s *Site) { s.Influx.Restart(t) }},
	}
}

// environ returns settings with stores that no other gateway of the test uses.
func (s *Site) environ() []string {
	if s.Redis == nil {
		return nil
	}
	n := s.stores.Add(1)
	return []string{
		"PENSTOCK_DATABASE_URL=" + s.Postgres.NewDatabase(s.T), fmt.Sprintf("PENSTOCK_REDIS_URL=%s/%d", s.Redis.URL, n),
		"PENSTOCK_INFLUX_URL=" + s.Influx.URL, fmt.Sprintf("PENSTOCK_INFLUX_BUCKET=gateway%d", n),
		"PENSTOCK_SMTP_ADDR=" + s.SMTP.Addr, "PENSTOCK_SMTP_FROM=gateway@" + smtptest.Domain,
	}
}

// Fixture reads a body of testdata and replaces words in it: old, new, old, new.
func Fixture(t testing.TB, name string, replace ...string) string {
	t.Helper()
	text := string(relaytest.Must(os.ReadFile(File(t, name)))(t))
	for pair := range slices.Chunk(replace, 2) {
		if !strings.Contains(text, pair[0]) {
			t.Fatalf("%s does not hold %q", name, pair[0])
		}
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return text
}
