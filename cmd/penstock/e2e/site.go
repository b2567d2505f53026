// Package e2e is the harness of the end-to-end tests: it starts gateways in this process
// or in processes of their own, on embedded back ends or on real servers, and has the
// clients, peers and fixtures that the folders below it share.
//
// Each folder tests one subject. Its TestMain calls Main, which lets the test binary act
// as the program, and its TestGateway runs the suites of the subject on the embedded back
// ends, and those for which the back end makes a difference on real servers.
//
// With PENSTOCK_TEST_SOAK=1 (make soak) faults strike more often, loads are larger, every
// suite runs on real servers, and the tests that otherwise skip themselves run.
package e2e

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/app"
	"github.com/penstock/penstock/delivery/codec"
	"github.com/penstock/penstock/delivery/email/smtptest"
	"github.com/penstock/penstock/delivery/influx/influxtest"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
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
// program in the processes that Spawn starts, and as the codec workers of gateways. It
// does not return.
func Main(m *testing.M) {
	if os.Getenv(ActAsProgram) == "1" || len(os.Args) == 2 && os.Args[1] == codec.WorkerCommand {
		app.Main("test")
	}
	if err := flag.Set("test.parallel", "6"); err != nil { // the command line overrides it; most tests wait, for a lease, a heartbeat or a retry
		panic(err)
	}
	code := m.Run()
	if chromium.end != nil {
		chromium.end()
	}
	os.Exit(code)
}

// Root returns the folder of the repository.
func Root(t testing.TB) string {
	t.Helper()
	dir := relaytest.Must(os.Getwd())(t)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("the tests do not run in the repository")
		}
		dir = parent
	}
}

// File returns the path of a file in testdata: of the package under test, or else
// of this package.
func File(t testing.TB, name string) string {
	t.Helper()
	file := filepath.Join("testdata", name)
	if found, _ := filepath.Glob(file); len(found) > 0 {
		return file
	}
	return filepath.Join(Root(t), "cmd", "penstock", "e2e", "testdata", name)
}

// Site has the back ends of gateways: the embedded ones, or a PostgreSQL, a Redis, an
// InfluxDB and an SMTP server. Each gateway gets stores of its own on them.
type Site struct {
	T        *testing.T
	Name     string
	Postgres *dbtest.Postgres
	Redis    *redistest.Server
	Influx   *influxtest.Server
	SMTP     *smtptest.Server
	// clustered makes Start run several gateways on the same stores.
	clustered bool
}

// Embedded returns the site of gateways with embedded back ends.
func Embedded() *Site { return &Site{Name: "embedded"} }

// Suites are tests, by name, that run on every site.
type Suites map[string]func(*testing.T, *Site)

// Soak reports whether PENSTOCK_TEST_SOAK=1 requests what takes long: faults strike more
// often, loads are larger, and every suite runs on real servers, too.
func Soak() bool { return os.Getenv("PENSTOCK_TEST_SOAK") == "1" }

// SoakOnly skips a test unless a soak is running. reason names which tests hold its promise
// meanwhile.
func SoakOnly(t *testing.T, reason string) {
	t.Helper()
	if !Soak() {
		t.Skip("skipped: PENSTOCK_TEST_SOAK=1 runs it; " + reason)
	}
}

// Rounds returns how often a test does something: as often as an environment variable says,
// else soakRounds times in a soak, else rounds times.
func Rounds(t *testing.T, variable string, rounds, soakRounds int) int {
	t.Helper()
	if Soak() {
		rounds = soakRounds
	}
	return NumberFromEnv(t, variable, rounds)
}

// RunSuites runs suites in parallel on the embedded back ends, and those named in onReal
// again on real servers that the suites share: those for which Redis, InfluxDB or an SMTP
// server makes a difference. A soak runs every suite on real servers.
func RunSuites(t *testing.T, suites Suites, onReal ...string) {
	t.Helper()
	for _, name := range onReal {
		if suites[name] == nil {
			t.Fatalf("there is no suite %q", name)
		}
	}
	onSites(t, true, Soak() || len(onReal) > 0, func(t *testing.T, s *Site) {
		for name, run := range suites {
			if s.Redis != nil && !Soak() && !slices.Contains(onReal, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, s)
			})
		}
	})
}

// OnEverySite runs a test on the embedded back ends and again on real servers.
func OnEverySite(t *testing.T, test func(t *testing.T, s *Site)) { onSites(t, true, true, test) }

// OnRealSite runs a test on real servers, and in a soak on the embedded back ends, too.
func OnRealSite(t *testing.T, test func(t *testing.T, s *Site)) { onSites(t, Soak(), true, test) }

// OnEmbeddedSite runs a test on the embedded back ends, and in a soak on real servers, too.
func OnEmbeddedSite(t *testing.T, test func(t *testing.T, s *Site)) { onSites(t, true, Soak(), test) }

func onSites(t *testing.T, embedded, onReal bool, test func(t *testing.T, s *Site)) {
	if embedded {
		t.Run("embedded", func(t *testing.T) { test(t, Embedded()) })
	}
	if onReal {
		t.Run("real", func(t *testing.T) { test(t, RealSite(t)) })
	}
}

// RealSite returns the site of gateways on the servers that all tests of a run share. A test
// must not stop them: see OwnServers. A missing program fails the test, or skips it when
// PENSTOCK_TEST_SKIP_REAL=1 says so.
func RealSite(t *testing.T) *Site {
	t.Helper()
	return &Site{
		T: t, Name: "real", Postgres: dbtest.Shared(t), Redis: redistest.Shared(t),
		Influx: influxtest.Shared(t), SMTP: smtptest.Shared(t),
	}
}

// OwnServers is RealSite with a PostgreSQL, a Redis and an InfluxDB of the test's own, for
// a test that stops them (BackEnds) or changes their settings. Starting them takes seconds.
func OwnServers(t *testing.T) *Site {
	t.Helper()
	return &Site{
		T: t, Name: "real", Postgres: dbtest.StartPostgres(t), Redis: redistest.Start(t, "--databases", "100"),
		Influx: influxtest.Start(t, influxtest.Options{}), SMTP: smtptest.Shared(t),
	}
}

// BackEnd is a server that a test stops and starts again, on a site with OwnServers.
type BackEnd struct {
	Name, Check string // Check is its name in /readyz
	Stop, Start func(t *testing.T, s *Site)
}

// BackEnds are the servers without which a gateway on OwnServers is not ready.
func BackEnds() []BackEnd {
	return []BackEnd{
		{"PostgreSQL", "records", func(_ *testing.T, s *Site) { s.Postgres.Kill() }, func(_ *testing.T, s *Site) { s.Postgres.Start() }},
		{"Redis", "queue", func(_ *testing.T, s *Site) { s.Redis.Stop() }, func(_ *testing.T, s *Site) { s.Redis.Restart() }},
		{"InfluxDB", "readings", func(_ *testing.T, s *Site) { s.Influx.Stop() }, func(t *testing.T, s *Site) { s.Influx.Restart(t) }},
	}
}

// environ returns settings with stores that no other gateway of the test uses.
func (s *Site) environ(t testing.TB) []string {
	if s.Redis == nil {
		return nil
	}
	return []string{
		"PENSTOCK_DATABASE_URL=" + s.Postgres.NewDatabase(t), "PENSTOCK_REDIS_URL=" + s.Redis.NewDatabase(t),
		"PENSTOCK_INFLUX_URL=" + s.Influx.URL, "PENSTOCK_INFLUX_BUCKET=" + s.Influx.NewDatabase(t),
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
