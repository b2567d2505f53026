package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestCheckConfigAndServeRefuseTheSameSettings passes each configuration to check-config and to Open.
func TestCheckConfigAndServeRefuseTheSameSettings(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		relaytest.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	absent, damaged := filepath.Join(dir, "absent"), file("damaged", "damaged\n")
	shortToken := filepath.Dir(file("short/admin-token", "abcde\n"))
	blankToken := filepath.Dir(file("blank/admin-token", "the admin token of this\n"))
	many := file("inventory.yaml", `accounts: [{name: acme, relays: {geo: [{id: g, prefix: "44", action: http_get, parameters: [`+strings.Repeat(`"https://example.com/in", `, 200)+`]}]}}]`)
	const mail = "smtp: {addr: '192.0.2.1:25', "
	for name, tc := range map[string]struct{ file, want string }{
		"a missing certificate":               {"tls: {cert_file: " + absent + ", key_file: " + absent + "}", "tls.cert_file (PENSTOCK_TLS_CERT_FILE), tls.key_file (PENSTOCK_TLS_KEY_FILE): certificate " + absent},
		"an invalid certificate":              {"tls: {cert_file: " + damaged + ", key_file: " + damaged + "}", "tls.cert_file (PENSTOCK_TLS_CERT_FILE)"},
		"a missing DKIM key":                  {mail + "dkim: {selector: s, key_file: " + absent + "}}", "smtp.dkim.key_file: open " + absent},
		"an invalid DKIM key":                 {mail + "dkim: {selector: s, key_file: " + damaged + "}}", "smtp.dkim.key_file " + damaged},
		"a mail password without TLS":         {mail + "tls: none, username: u, password: p}", "smtp: email: credentials need tls"},
		"a missing master key":                {"ledger: {master_key_file: " + absent + "}", "ledger: master key of ledgers: open " + absent},
		"an invalid master key":               {"ledger: {master_key_file: " + damaged + "}", "ledger: vault: master key 1"},
		"a Sentinel URL without a master":     {"redis: {url: 'redis+sentinel://a:1,b:2'}", "redis.url (PENSTOCK_REDIS_URL): the path must be the master's name"},
		"an invalid Redis database number":    {"redis: {url: 'redis://a/x'}", "redis.url (PENSTOCK_REDIS_URL): the database must be a number"},
		"a database URL with a bad parameter": {"database: {url: 'postgres://u:secret@h/d?sslmode=some'}", "database.url (PENSTOCK_DATABASE_URL): it does not parse"},
		"a missing root certificate":          {"database: {url: 'postgres://u:secret@h/d?sslmode=verify-full&sslrootcert=" + absent + "'}", "database.url (PENSTOCK_DATABASE_URL): it does not parse"},
		"an InfluxDB URL with a user":         {"influx: {url: 'http://u:secret@h'}", "influx: influx: url must not have a user"},
		"a data directory that is a file":     {"data_dir: " + damaged, "data_dir (PENSTOCK_DATA_DIR): " + damaged + " is not a directory"},
		"an admin token that is too short":    {"data_dir: " + shortToken, "admin_token (PENSTOCK_ADMIN_TOKEN): " + filepath.Join(shortToken, client.AdminTokenFile) + ": expected at least 16 characters, got 5"},
		"an admin token with blanks":          {"data_dir: " + blankToken, "expected a token without blanks"},
		"a missing inventory":                 {"inventory: " + absent, "inventory: open " + absent},
		"an inventory with too many URLs":     {"inventory: " + many, "accounts[0].relays.geo[0].action: The parameters may not have more than"},
		"a missing CA file of a carrier":      {"carriers: [{type: smpp, name: c, addr: 'h:1', tls: tls, ca_file: " + absent + "}]", "carriers[0].ca_file: expected a file that can be read"},
	} {
		t.Run(name, func(t *testing.T) {
			settings := []string{}
			if !strings.Contains(tc.file, "data_dir") {
				settings = append(settings, "PENSTOCK_DATA_DIR="+t.TempDir())
			}
			config := file("penstock.yaml", tc.file)
			checkError := func(command, got string) {
				if !strings.Contains(got, tc.want) || strings.Contains(got, "secret") {
					t.Errorf("%s: error = %q, want %q and no secret", command, got, tc.want)
				}
			}
			var output strings.Builder
			code := Run([]string{"check-config", config}, client.Environment{Context: t.Context(), Variables: settings, Stdout: &output, Stderr: &output})
			relaytest.Equal(t, "the exit code of check-config", code, exitFailed)
			checkError("check-config", output.String())
			checkError("Open", openError(t, config, settings))
		})
	}
}

// openError opens a gateway and returns its error.
func openError(t *testing.T, file string, settings []string) string {
	t.Helper()
	cfg, err := config.Load(file, settings)
	if err != nil {
		return err.Error()
	}
	g, err := Open(t.Context(), cfg, slog.New(slog.DiscardHandler), "test")
	if err == nil {
		t.Error("Open succeeded, want an error" + g.Abandon())
		return ""
	}
	return err.Error()
}

func TestCheckConfigWarnsOfUnknownVariables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "penstock.yaml")
	relaytest.NoError(t, os.WriteFile(file, nil, 0o600))
	var stdout, stderr strings.Builder
	code := Run([]string{"check-config", file}, client.Environment{
		Context: t.Context(), Variables: []string{"PENSTOCK_LISTN=:80", "PENSTOCK_DATA_DIR=" + t.TempDir()}, Stdout: &stdout, Stderr: &stderr,
	})
	relaytest.Equal(t, "the exit code, standard output and standard error", []any{code, stdout.String(), stderr.String()},
		[]any{exitDone, "ok\n", "penstock: warning: PENSTOCK_LISTN: unknown; did you mean PENSTOCK_LISTEN?\n"})
}

func TestCheckConfigChecksAnInventory(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		code int
		want string
	}{
		"an inventory":                    {"document: site-a\naccounts: [{name: acme}, {name: globex}]", exitDone, "ok: an inventory, document site-a, accounts: 2\n"},
		"an inventory as JSON":            {`{"accounts": []}`, exitDone, "ok: an inventory, document default, accounts: 0\n"},
		"an inventory with a mistake":     {"accounts: [{name: acme, credit: many}]", exitFailed, "accounts[0].credit: expected a whole number, got \"many\"\n"},
		"a decoder that does not compile": {"accounts: [{name: a, decoders: [{id: d, name: D, type: other, codec: javascript, source: 'function ('}]}]", exitFailed, "accounts[0].decoders[0].source: "},
		"a configuration":                 {"log: {format: json}", exitDone, "ok\n"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file.yaml")
			relaytest.NoError(t, os.WriteFile(file, []byte(tc.text), 0o600))
			var output strings.Builder
			code := Run([]string{"check-config", file}, client.Environment{
				Context: t.Context(), Variables: []string{"PENSTOCK_DATA_DIR=" + t.TempDir()}, Stdout: &output, Stderr: &output,
			})
			relaytest.Equal(t, "the exit code", code, tc.code)
			if !strings.Contains(output.String(), tc.want) {
				t.Errorf("output = %q, want %q", output.String(), tc.want)
			}
		})
	}
}
