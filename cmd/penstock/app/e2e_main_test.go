package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/delivery/email/smtptest"
	"github.com/penstock/penstock/delivery/influx/influxtest"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/sqlstore/sqltest"
)

// actAsProgram makes the test binary the program, for tests that must kill it.
const actAsProgram = "RUN_AS_PENSTOCK"

func TestMain(m *testing.M) {
	if os.Getenv(actAsProgram) == "1" {
		Main("test")
	}
	os.Exit(m.Run())
}

// site is what gateways stand on: nothing (embedded), or a PostgreSQL, a Redis, an
// InfluxDB and an SMTP server of the test's own. Each gateway gets stores of its own.
type site struct {
	t        *testing.T
	name     string
	postgres *sqltest.Postgres
	redis    *redistest.Server
	influx   *influxtest.Server
	smtp     *smtptest.Server
	stores   atomic.Int64
	// clustered has start run several gateways on the same stores.
	clustered bool
}

// onEverySite runs a test on the embedded back ends and again on real servers.
func onEverySite(t *testing.T, test func(t *testing.T, s *site)) {
	t.Run("embedded", func(t *testing.T) { test(t, &site{name: "embedded"}) })
	t.Run("real", func(t *testing.T) { test(t, realSite(t)) })
}

// realSite starts servers. A missing program fails the test, or skips it when
// PENSTOCK_TEST_SKIP_REAL=1 says so.
func realSite(t *testing.T) *site {
	t.Helper()
	return &site{
		t: t, name: "real", postgres: sqltest.StartPostgres(t), redis: redistest.Start(t, "--databases", "100"),
		influx: influxtest.Start(t, influxtest.Options{}), smtp: smtptest.Start(t),
	}
}

// environ names stores that no other gateway of the test has.
func (s *site) environ() []string {
	if s.redis == nil {
		return nil
	}
	n := s.stores.Add(1)
	return []string{
		"PENSTOCK_DATABASE_URL=" + s.postgres.NewDatabase(s.t), fmt.Sprintf("PENSTOCK_REDIS_URL=%s/%d", s.redis.URL, n),
		"PENSTOCK_INFLUX_URL=" + s.influx.URL, fmt.Sprintf("PENSTOCK_INFLUX_BUCKET=gateway%d", n),
		"PENSTOCK_SMTP_ADDR=" + s.smtp.Addr, "PENSTOCK_SMTP_FROM=gateway@" + smtptest.Domain,
	}
}

// delivered is the state of a mail that arrived.
func (s *site) delivered() string {
	if s.smtp == nil {
		return "simulated"
	}
	return "delivered"
}

// TestGateway drives the whole program over HTTP: every suite on every site.
func TestGateway(t *testing.T) {
	onEverySite(t, func(t *testing.T, s *site) {
		for _, suite := range []struct {
			name string
			run  func(*testing.T, *site)
		}{
			{"frames", testFrames},
			{"the generic webhook", testGeneric},
			{"posts of many readings", testPosts},
			{"frames told of in several posts", testSupplements},
			{"lost frames", testLoss},
			{"quarantine", testQuarantine},
			{"a decoder that is mended", testMended},
			{"a codec that never ends", testEndlessCodec},
			{"a codec's clock", testCodecClock},
			{"retention at the start", testRetentionAtStart},
			{"a codec of a megabyte", testLongSource},
			{"readings", testReadings},
			{"decoders", testDecoders},
			{"devices", testDevices},
			{"credentials", testCredentials},
			{"isolation of accounts", testIsolation},
			{"ledgers", testLedgers},
			{"hostile bodies", testBodies},
			{"inventory", testInventory},
			{"inventory, refused", testInventoryRefused},
			{"inventory, pruned", testPrune},
			{"inventory of several documents", testDocuments},
			{"messages", testMessages},
			{"placeholders", testPlaceholders},
			{"mails", testMails},
			{"routes", testRoutes},
			{"attempts", testAttempts},
			{"egress", testEgress},
			{"breaker", testBreaker},
			{"usage", testUsage},
			{"operations", testOperations},
			{"shell", testShell},
			{"rules", testRules},
		} {
			t.Run(suite.name, func(t *testing.T) {
				t.Parallel()
				suite.run(t, s)
			})
		}
	})
}

// fixture reads a body of testdata and replaces words in it: old, new, old, new.
func fixture(t testing.TB, name string, replace ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for pair := range slices.Chunk(replace, 2) {
		if !strings.Contains(text, pair[0]) {
			t.Fatalf("%s does not hold %q", name, pair[0])
		}
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return text
}
