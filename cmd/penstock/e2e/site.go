// Package e2e is the harness of the end-to-end tests: it starts gateways in this process
// or in processes of their own, on embedded back ends or on real servers, and provides the
// clients, peers and fixtures that the folders below it share.
//
// Each folder tests one subject. Its TestMain calls Main, which lets the test binary act as the
// program. Its TestGateway runs all suites of the subject on the embedded back ends, and runs the
// suites that depend on the back ends again on real servers.
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

// Random returns a source of random numbers and logs its seed. PENSTOCK_TEST_SEED sets the
// seed, to repeat a run.
func Random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := NumberFromEnv(t, "PENSTOCK_TEST_SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("PENSTOCK_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(uint64(seed), 0))
}

// NumberFromEnv returns the number in an environment variable, or defaultValue if the variable
// is empty.
func NumberFromEnv(t *testing.T, name string, defaultValue int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return defaultValue
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

// Main runs the tests of a package or the program: the test binary acts as the program in the
// processes that Gateway.Command starts and in the codec workers of gateways. Main does not return.
func Main(m *testing.M) {
	if os.Getenv(ActAsProgram) == "1" || len(os.Args) == 2 && os.Args[1] == codec.WorkerCommand {
		app.Main("test")
	}
	if err := flag.Set("test.parallel", "6"); err != nil { // most tests wait for a lease, a heartbeat or a retry; the command line overrides the number
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

// Site has the back ends of gateways: the embedded back ends, or a PostgreSQL, a Redis, an InfluxDB
// and an SMTP server. On servers, each gateway has its own database, bucket and Redis database.
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

// Suites are tests by name, for RunSuites.
type Suites map[string]func(*testing.T, *Site)

// Soak reports whether PENSTOCK_TEST_SOAK=1 requests the long tests: faults strike more often,
// loads are larger, and every suite also runs on real servers.
func Soak() bool { return os.Getenv("PENSTOCK_TEST_SOAK") == "1" }

// SoakOnly skips a test unless a soak is running. reason names the tests that cover the subject
// in other runs.
func SoakOnly(t *testing.T, reason string) {
	t.Helper()
	if !Soak() {
		t.Skip("skipped: PENSTOCK_TEST_SOAK=1 runs it; " + reason)
	}
}

// Rounds returns the number of rounds of a test: the value of an environment variable if set,
// otherwise soakRounds in a soak and rounds in other runs.
func Rounds(t *testing.T, variable string, rounds, soakRounds int) int {
	t.Helper()
	if Soak() {
		rounds = soakRounds
	}
	return NumberFromEnv(t, variable, rounds)
}

// RunSuites runs suites in parallel on the embedded back ends. It runs the suites in onReal again on
// real servers, which the suites share, because they depend on Redis, InfluxDB or an SMTP server. A
// soak runs every suite on real servers.
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

// OnRealSite runs a test on real servers, and in a soak also on the embedded back ends.
func OnRealSite(t *testing.T, test func(t *testing.T, s *Site)) { onSites(t, Soak(), true, test) }

// OnEmbeddedSite runs a test on the embedded back ends, and in a soak also on real servers.
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
// must not stop these servers: see OwnServers. If the program of a server is missing, RealSite fails
// the test, or skips the test if PENSTOCK_TEST_SKIP_REAL=1.
func RealSite(t *testing.T) *Site {
	t.Helper()
	return &Site{
		T: t, Name: "real", Postgres: dbtest.Shared(t), Redis: redistest.Shared(t),
		Influx: influxtest.Shared(t), SMTP: smtptest.Shared(t),
	}
}

// OwnServers returns a site with a PostgreSQL, a Redis and an InfluxDB for one test, which may
// stop them (BackEnds) or change their settings. Starting them takes seconds.
func OwnServers(t *testing.T) *Site {
	t.Helper()
	return &Site{
		T: t, Name: "real", Postgres: dbtest.StartPostgres(t), Redis: redistest.Start(t, "--databases", "100"),
		Influx: influxtest.Start(t, influxtest.Options{}), SMTP: smtptest.Shared(t),
	}
}

// BackEnd is a server that a test stops and starts again, on a site with OwnServers.
type BackEnd struct {
	Name, Check string // Check is the name in /readyz
	Stop, Start func(t *testing.T, s *Site)
}

// BackEnds returns the servers without which a gateway on a site of OwnServers is not ready.
func BackEnds() []BackEnd {
	return []BackEnd{
		{"PostgreSQL", "records", func(_ *testing.T, s *Site) { s.Postgres.Kill() }, func(_ *testing.T, s *Site) { s.Postgres.Start() }},
		{"Redis", "queue", func(_ *testing.T, s *Site) { s.Redis.Stop() }, func(_ *testing.T, s *Site) { s.Redis.Restart() }},
		{"InfluxDB", "readings", func(_ *testing.T, s *Site) { s.Influx.Stop() }, func(t *testing.T, s *Site) { s.Influx.Restart(t) }},
	}
}

// environ returns the settings for new stores on the site's servers, none for embedded back
// ends.
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

// Fixture returns a file of testdata. replace has pairs of old and new text.
func Fixture(t testing.TB, name string, replace ...string) string {
	t.Helper()
	text := string(relaytest.Must(os.ReadFile(File(t, name)))(t))
	for pair := range slices.Chunk(replace, 2) {
		if !strings.Contains(text, pair[0]) {
			t.Fatalf("%s does not contain %q", name, pair[0])
		}
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return text
}
