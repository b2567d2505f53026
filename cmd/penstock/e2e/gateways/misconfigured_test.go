package gateways

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/app"
	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestConflictingSettingsAreReported starts two gateways with settings that conflict. /readyz of both
// gateways names the setting.
func TestConflictingSettingsAreReported(t *testing.T) {
	t.Parallel()
	s := e2e.RealSite(t)
	for _, tc := range []struct {
		name           string
		sharedSettings []string // settings of both gateways
		secondSettings []string // settings of the second gateway
		setting        string   // the setting that /readyz must name
	}{
		{"each has a Redis of its own", nil, []string{"PENSTOCK_REDIS_URL=" + s.Redis.NewDatabase(t)}, "redis.url"},
		{"one has the embedded queue", nil, []string{"PENSTOCK_REDIS_URL="}, "redis.url"},
		{"each has a bucket of its own", nil, []string{"PENSTOCK_INFLUX_BUCKET=" + s.Influx.NewDatabase(t)}, "influx.bucket"},
		{"each has embedded readings", []string{"PENSTOCK_INFLUX_URL=", "PENSTOCK_INFLUX_BUCKET="}, nil, "influx.url"},
		{"one has embedded readings", nil, []string{"PENSTOCK_INFLUX_URL=", "PENSTOCK_INFLUX_BUCKET="}, "influx.url"},
		{"each has a master key of its own", nil, []string{"PENSTOCK_LEDGER_MASTER_KEY=HxwdHhscGRoYFRYXFBESExAPDg0MCwoJCAcGBQQDAgE="}, "ledger.master_key"},
		{"each has a public URL of its own", nil, []string{"PENSTOCK_PUBLIC_URL=https://two.example.com"}, "public_url"},
		{"each has generated a master key", []string{"PENSTOCK_LEDGER_MASTER_KEY="}, nil, "ledger.master_key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := e2e.NewCluster(t, s, `{"accounts": []}`, tc.sharedSettings...)
			gatewayA, gatewayB := c.Gateways[0], c.Gateways[1]
			gatewayB.Env = e2e.OverrideSettings(gatewayB.Env, tc.secondSettings)
			gatewayA.Run()
			gatewayB.Run()
			awaitConflict(gatewayA, tc.setting)
			awaitConflict(gatewayB, tc.setting)
		})
	}
	t.Run("each has a database of its own, and both use one Redis", func(t *testing.T) {
		t.Parallel()
		c := e2e.NewCluster(t, s, `{"accounts": []}`)
		gatewayA, gatewayB := c.Gateways[0], c.Gateways[1]
		gatewayB.Env = e2e.OverrideSettings(gatewayB.Env, []string{"PENSTOCK_DATABASE_URL=" + s.Postgres.NewDatabase(t)})
		gatewayA.Run()
		awaitRegistered(gatewayA)
		gatewayB.Run()
		for _, g := range c.Gateways[:2] {
			awaitConflict(g, "redis.url")
			awaitConflict(g, "database.url")
		}
	})
}

// awaitConflict waits until /readyz names a setting that conflicts and reports no other back end as down.
// On a busy machine a back end may be down for a moment.
func awaitConflict(g *e2e.Gateway, setting string) {
	g.T.Helper()
	relaytest.Eventually(g.T, "/readyz of "+g.URL()+" names "+setting, func() (any, bool) {
		status, r := g.Ready()
		for name, b := range r.Backends {
			sameCause := name == "ledgers" && setting == "ledger.master_key" // one gateway cannot open the records that the other has sealed
			if name != "gateways" && !sameCause && b.Status != "ok" {
				return name + " is " + b.Status + ": " + b.Error, false
			}
		}
		b := r.Backends["gateways"]
		return b, status == http.StatusServiceUnavailable && b.Status == "down" && strings.Contains(b.Error, setting)
	})
}

// awaitRegistered waits until a gateway is registered.
func awaitRegistered(g *e2e.Gateway) {
	g.T.Helper()
	relaytest.Eventually(g.T, "the gateway is registered", func() (any, bool) {
		resp := g.Admin().Get("/admin/gateways")
		return resp, strings.Contains(resp.Body, g.URL())
	})
}

// TestServeRefusesAnUnusableDatabase starts the program on databases that it cannot use. The program exits
// with the reason and the name of the setting, and does not print the password.
func TestServeRefusesAnUnusableDatabase(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	addr := createRoles(t, server)
	newerDatabase := server.NewDatabase(t)
	if got := e2e.RunCommand([]string{"PENSTOCK_DATABASE_URL=" + newerDatabase, "PENSTOCK_DATA_DIR=" + t.TempDir()}, "", "migrate"); got.Code != 0 {
		t.Fatalf("exit code of migrate = %d, want 0: %s", got.Code, got.Stderr)
	}
	execute(t, newerDatabase, "INSERT INTO schema_version (version_id, is_applied) VALUES (9999, true)")
	const password = "s3cr3t-w0rd"
	for _, tc := range []struct{ name, url, reason string }{
		{"another kind of database", "mysql://penstock:" + password + "@127.0.0.1/penstock", "expected a URL such as postgres://"},
		{"an invalid port", "postgres://penstock:" + password + "@127.0.0.1:port/penstock", "expected a URL such as postgres://"},
		{"an invalid host", "postgres://penstock:" + password + "@[::1/penstock", "expected a URL such as postgres://"},
		{"a password with a percent sign", "postgres://penstock:" + password + "%zz@127.0.0.1/penstock", "expected a URL such as postgres://"},
		{"a port that is too large", "postgres://penstock:" + password + "@127.0.0.1:99999/penstock", "does not parse"},
		{"an invalid option", "postgres://penstock:" + password + "@127.0.0.1/penstock?sslmode=maybe", "does not parse"},
		{"a wrong password", "postgres://stranger:" + password + "@" + addr, "refused the user or password"},
		{"an unknown user", "postgres://nobody:" + password + "@" + addr, "refused the user or password"},
		{"an unknown database", "postgres://member:right-" + password + "@" + strings.Replace(addr, "/postgres", "/none", 1), "does not exist"},
		{"a user without rights", "postgres://member:right-" + password + "@" + addr, "lacks a right"},
		{"a schema that is newer than the program", newerDatabase, "its schema has version 9999"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), relaytest.Patience)
			defer cancel()
			var output bytes.Buffer
			code := app.Run([]string{"serve"}, client.Environment{Context: ctx, Variables: []string{
				"PENSTOCK_DATABASE_URL=" + tc.url, "PENSTOCK_DATA_DIR=" + t.TempDir(), "PENSTOCK_LISTEN=127.0.0.1:0",
			}, Stdin: strings.NewReader(""), Stdout: &output, Stderr: &output, Version: "test"})
			text := output.String()
			if code != e2e.ExitFailed || ctx.Err() != nil || !strings.Contains(text, tc.reason) || !strings.Contains(text, "database.url") || !strings.Contains(text, "PENSTOCK_DATABASE_URL") {
				t.Errorf("exit code = %d, output = %s\nwant 1, %q and the name of the setting", code, text, tc.reason)
			}
			if strings.Contains(text, password) {
				t.Errorf("the output contains the password:\n%s", text)
			}
			if strings.Contains(text, "waiting for the database") {
				t.Errorf("output = %s\nwant no waiting for the database", text)
			}
		})
	}
}

// createRoles creates two roles with passwords, and returns the end of their database URLs, as
// host:port/database. The superuser needs no password.
func createRoles(t *testing.T, server *dbtest.Postgres) string {
	t.Helper()
	execute(t, server.URL+"postgres",
		"CREATE ROLE stranger LOGIN PASSWORD 'another one'",
		"CREATE ROLE member LOGIN PASSWORD 'right-s3cr3t-w0rd'",
		"REVOKE CREATE ON SCHEMA public FROM PUBLIC",
		fmt.Sprintf("DO $$ BEGIN EXECUTE format('COPY (SELECT unnest(ARRAY[%s])) TO %%L', current_setting('hba_file')); END $$",
			"''host all postgres 127.0.0.1/32 trust'', ''host all all 127.0.0.1/32 scram-sha-256''"),
		"SELECT pg_reload_conf()",
	)
	return strings.TrimPrefix(server.URL, "postgres://postgres@") + "postgres"
}

// execute executes statements in a PostgreSQL database.
func execute(t *testing.T, url string, list ...string) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	relaytest.NoError(t, err)
	defer func() { relaytest.NoError(t, db.Close()) }()
	for _, statement := range list {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
