package config_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/relay/relaytest"
)

const masterKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

const example = "../deploy/penstock.example.yaml"

func TestExampleFileHasTheDefaults(t *testing.T) {
	want, err := config.Load("", nil)
	relaytest.NoError(t, err)
	got, err := config.Load(example, nil)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the configuration of the example", got, want)
}

func TestExampleFileNamesEveryVariable(t *testing.T) {
	text, err := os.ReadFile(example)
	relaytest.NoError(t, err)
	for _, attr := range config.Default().LogValue().Group() {
		if slices.Contains([]string{"carriers", "operator", "lookup"}, attr.Key) {
			continue // has no variable
		}
		name := "PENSTOCK_" + strings.ToUpper(strings.ReplaceAll(attr.Key, ".", "_"))
		if !regexp.MustCompile(`\b` + name + `\b`).Match(text) {
			t.Errorf("the example does not have %s", name)
		}
	}
}

func TestVariablesSetEverySettingAndOverrideTheFile(t *testing.T) {
	file := "listen: 0.0.0.0:1\ntime_zone: UTC\negress: {allow: [192.0.2.0/24]}\n"
	c, err := config.Parse([]byte(file), []string{
		"PENSTOCK_LISTEN=:9000", "PENSTOCK_PUBLIC_URL=https://gw.example.com/", "PENSTOCK_DATA_DIR=/var/lib/x",
		"PENSTOCK_ADMIN_TOKEN=adm-token-0123456", "PENSTOCK_INVENTORY=inv.yaml", "PENSTOCK_REDIS_URL=redis+sentinel://u:p@a:1,b:2/m",
		"PENSTOCK_INFLUX_URL=http://i:8086", "PENSTOCK_INFLUX_TOKEN=a:b", "PENSTOCK_INFLUX_ORG=o", "PENSTOCK_INFLUX_BUCKET=d/autogen", "PENSTOCK_READINGS_RADIO_DATA=basic",
		"PENSTOCK_SMTP_ADDR=mx.example.com:25", "PENSTOCK_SMTP_USERNAME=u", "PENSTOCK_SMTP_PASSWORD=p", "PENSTOCK_SMTP_FROM=Gate <g@example.com>", "PENSTOCK_SMTP_TLS=tls",
		"PENSTOCK_SMTP_DKIM_DOMAIN=example.com", "PENSTOCK_SMTP_DKIM_SELECTOR=gw1", "PENSTOCK_SMTP_DKIM_KEY_FILE=k.pem", "PENSTOCK_TRUSTED_PROXIES=192.0.2.1",
		"PENSTOCK_EGRESS_ALLOW=10.1.2.3/8, ::1", "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true",
		"PENSTOCK_JOURNAL_RETENTION=48h", "PENSTOCK_JOURNAL_MAX_BYTES=500MB", "PENSTOCK_DELIVERY_SCHEDULE=100ms,1s",
		"PENSTOCK_INBOUND_ANSWER_WAIT=4s", "PENSTOCK_INBOUND_JOIN_WAIT=90s", "PENSTOCK_DELIVERY_RETENTION=24h", "PENSTOCK_DELIVERY_DEAD_RETENTION=48h",
		"PENSTOCK_LEDGER_MASTER_KEY=" + masterKey + "," + masterKey, "PENSTOCK_LEDGER_CHECKPOINT_DIR=/srv/heads", "PENSTOCK_LEDGER_CHECKPOINT_CALLBACK=true",
		"PENSTOCK_OVERLOAD_WEBHOOKS_REQUESTS=100", "PENSTOCK_OVERLOAD_WEBHOOKS_BYTES=64MiB", "PENSTOCK_OVERLOAD_API_REQUESTS=50",
		"PENSTOCK_OVERLOAD_API_BYTES=32MiB", "PENSTOCK_OVERLOAD_SEARCHES=4", "PENSTOCK_OVERLOAD_ACCOUNT_SHARE=80", "PENSTOCK_OVERLOAD_WAIT=100ms", "PENSTOCK_OVERLOAD_CONNECTIONS=500", "PENSTOCK_RULES_ACTIONS_PER_FRAME=20", "PENSTOCK_RULES_ACTIONS_PER_MINUTE=300",
		"PENSTOCK_LOG_LEVEL=warn", "PENSTOCK_LOG_FORMAT=json", "PENSTOCK_LOG_ACCESS=true", "PENSTOCK_TLS_CERT_FILE=c.pem", "PENSTOCK_TLS_KEY_FILE=k.pem", "PENSTOCK_DEBUG_LISTEN=localhost:6060",
		"PENSTOCK_TRACING_URL=http://127.0.0.1:4318", "PENSTOCK_TRACING_SAMPLE=0.25", "PENSTOCK_TRACING_HEADERS=api-key=hush,x=y",
		"PENSTOCK_DATABASE_URL=postgres://u:p@a:1,b:2/d?sslmode=verify-full", "PENSTOCK_INTERNAL_URL=http://10.0.0.1:9000/",
		"PENSTOCK_RECEIPT_SECRET=hush-hush-123456", "PENSTOCK_TIME_ZONE=Europe/Berlin",
		"PENSTOCK_USERS_SESSION=1h", "PENSTOCK_OIDC_ISSUER=https://idp.example.com", "PENSTOCK_OIDC_CLIENT_ID=penstock", "PENSTOCK_OIDC_CLIENT_SECRET=hush", "PENSTOCK_OIDC_SCOPES=groups",
		"PENSTOCK_OIDC_NAME_CLAIM=email", "PENSTOCK_OIDC_ROLE_CLAIM=roles", "PENSTOCK_OIDC_ADMIN=a", "PENSTOCK_OIDC_OPERATOR=b,c", "PENSTOCK_OIDC_VIEWER=d", "PENSTOCK_OIDC_ACCOUNT_CLAIM=account",
		"PENSTOCK_PORT=tcp://10.0.0.1:80", "PENSTOCK_SERVICE_HOST=10.0.0.1", "HOME=/root",
	})
	relaytest.NoError(t, err)
	zone, _ := time.LoadLocation("Europe/Berlin")
	want := config.Config{
		Listen: ":9000", PublicURL: "https://gw.example.com", DataDir: "/var/lib/x", AdminToken: "adm-token-0123456", Inventory: "inv.yaml",
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")},
		InternalURL:    "http://10.0.0.1:9000", Database: config.Database{URL: "postgres://u:p@a:1,b:2/d?sslmode=verify-full"},
		Redis:    config.Redis{URL: "redis+sentinel://u:p@a:1,b:2/m"},
		Influx:   config.Influx{URL: "http://i:8086", Token: "a:b", Org: "o", Bucket: "d/autogen"},
		Readings: config.Readings{RadioData: config.RadioBasic},
		SMTP:     config.SMTP{Addr: "mx.example.com:25", Username: "u", Password: "p", From: "Gate <g@example.com>", TLS: "tls", DKIM: config.DKIM{Domain: "example.com", Selector: "gw1", KeyFile: "k.pem"}},
		Egress:   config.Egress{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}, AllowHTTPCallback: true},
		Journal:  config.Journal{Retention: 48 * time.Hour, MaxBytes: 500e6},
		Inbound:  config.Inbound{AnswerWait: 4 * time.Second, JoinWait: 90 * time.Second},
		Delivery: config.Delivery{
			Schedule: []time.Duration{100 * time.Millisecond, time.Second}, Retention: 24 * time.Hour, DeadRetention: 48 * time.Hour,
		},
		Ledger: config.Ledger{MasterKey: masterKey + "," + masterKey, CheckpointDir: "/srv/heads", CheckpointCallback: true},
		Overload: config.Overload{
			Webhooks: config.RequestLimit{Requests: 100, Bytes: 64 << 20}, API: config.RequestLimit{Requests: 50, Bytes: 32 << 20},
			Searches: 4, AccountShare: 80, Wait: 100 * time.Millisecond, Connections: 500,
		},
		Rules: config.Rules{ActionsPerFrame: 20, ActionsPerMinute: 300},
		Log:   config.Log{Level: slog.LevelWarn, Format: config.LogJSON, Access: true},
		Users: config.Users{Session: time.Hour},
		OIDC: config.OIDC{
			Issuer: "https://idp.example.com", ClientID: "penstock", ClientSecret: "hush", Scopes: []string{"groups"}, NameClaim: "email", RoleClaim: "roles",
			Admin: []string{"a"}, Operator: []string{"b", "c"}, Viewer: []string{"d"}, AccountClaim: "account",
		},
		TLS: config.TLS{CertFile: "c.pem", KeyFile: "k.pem"}, Debug: config.Debug{Listen: "localhost:6060"},
		Tracing:  config.Tracing{URL: "http://127.0.0.1:4318", Sample: 0.25, Headers: "api-key=hush,x=y"},
		TimeZone: zone, ReceiptSecret: "hush-hush-123456",
		Carriers: []config.Carrier{{Type: "simulator", Name: "simulator", Window: 1000}},
		Operator: config.Operator{Type: "simulator", Timeout: 5 * time.Second, MaxConcurrent: 16, ReportWithin: 24 * time.Hour},
		Lookup:   config.Lookup{Type: "simulator", Cache: 10 * time.Minute, Timeout: 10 * time.Second},
	}
	relaytest.Equal(t, "the configuration", c, want)
}

func TestDerivedSettings(t *testing.T) {
	for name, tc := range map[string]struct{ file, publicURL, smtpFrom, smtpTLS string }{
		"all interfaces":                      {"listen: 0.0.0.0:80", "http://127.0.0.1:80", "penstock@localhost", "starttls"},
		"no host":                             {"listen: ':80'", "http://127.0.0.1:80", "penstock@localhost", "starttls"},
		"an IPv6 address":                     {"listen: '[::1]:80'", "http://[::1]:80", "penstock@localhost", "starttls"},
		"a public name":                       {"public_url: https://gw.example.com", "https://gw.example.com", "penstock@gw.example.com", "starttls"},
		"TLS":                                 {"listen: ':443'\ntls: {cert_file: c, key_file: k}", "https://127.0.0.1:443", "penstock@localhost", "starttls"},
		"a local mail server":                 {"smtp: {addr: 'localhost:25'}", "http://127.0.0.1:8080", "penstock@localhost", "none"},
		"a remote mail server":                {"smtp: {addr: 'mx.example.com:25'}", "http://127.0.0.1:8080", "penstock@localhost", "starttls"},
		"a delivery schedule without retries": {"delivery: {schedule: []}\noperator: simulator\ncarriers: simulator", "http://127.0.0.1:8080", "penstock@localhost", "starttls"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := config.Parse([]byte(tc.file), []string{"PENSTOCK_REDIS_URL="})
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the public URL", c.PublicURL, tc.publicURL)
			relaytest.Equal(t, "smtp.from", c.SMTP.From, tc.smtpFrom)
			relaytest.Equal(t, "smtp.tls", c.SMTP.TLS, tc.smtpTLS)
		})
	}
}

func TestABindInheritsTheSettingsOfItsCarrier(t *testing.T) {
	for name, tc := range map[string]struct {
		file  string
		sends bool
		want  []config.Bind
	}{
		"a carrier without binds": {
			"{addr: 'h:1', system_id: me, password: p, window: 5, per_second: 7}", true,
			[]config.Bind{{Addr: "h:1", SystemID: "me", Password: "p", Type: "transceiver", Window: 5}},
		},
		"a transmitter and a receiver": {
			"{addr: 'h:1', system_id: me, password: p, binds: [{bind: transmitter, window: 3, per_second: 4}, {bind: receiver, system_id: me-rx, password: q}]}", true,
			[]config.Bind{{Addr: "h:1", SystemID: "me", Password: "p", Type: "transmitter", Window: 3, PerSecond: 4}, {Addr: "h:1", SystemID: "me-rx", Password: "q", Type: "receiver", Window: 10}},
		},
		"receivers on two hosts": {
			"{bind: receiver, binds: [{addr: 'h:1'}, {addr: 'i:1'}]}", false,
			[]config.Bind{{Addr: "h:1", Type: "receiver", Window: 10}, {Addr: "i:1", Type: "receiver", Window: 10}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := config.Parse([]byte("carriers: {type: smpp, name: a, "+tc.file[1:]), nil)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the binds", c.Carriers[0].Connections(), tc.want)
			relaytest.Equal(t, "whether the carrier sends", c.Carriers[0].Sends(), tc.sends)
		})
	}
}

func TestUnknownVariablesAreNamed(t *testing.T) {
	got := config.UnknownVariables([]string{
		"HOME=/root", "PENSTOCK_LISTEN=:80", "PENSTOCK_LISTN=:80", "PENSTOCK_REDIS_URI=x", "PENSTOCK_PORT=tcp://10.0.0.1:80", "PENSTOCK_LOG_LEVL=", "PENSTOCK_TEST_SEED=1",
	})
	relaytest.Equal(t, "the unknown variables", got, []string{
		"PENSTOCK_LISTN: unknown; did you mean PENSTOCK_LISTEN?", "PENSTOCK_REDIS_URI: unknown; did you mean PENSTOCK_REDIS_URL?", "PENSTOCK_PORT: unknown",
	})
}

func TestParseNamesEveryMistake(t *testing.T) {
	for name, tc := range map[string]struct{ file, env, want string }{
		"an unknown key": {"lisen: a", "", `lisen: unknown field, did you mean "listen"?`},
		"a certificate without a key, and a debug listener on all interfaces": {
			"tls: {cert_file: c.pem}\ndebug: {listen: '0.0.0.0:6060'}", "",
			"tls.key_file (PENSTOCK_TLS_KEY_FILE): expected a file, because tls.cert_file is set\n" +
				"debug.listen (PENSTOCK_DEBUG_LISTEN): expected host:port of a loopback address such as 127.0.0.1:6060, got \"0.0.0.0:6060\": profiles hold secrets",
		},
		"an unknown log level, log format and boolean": {
			"log: {level: loud, format: xml, access: maybe}", "",
			"log.level (PENSTOCK_LOG_LEVEL): expected debug, info, warn or error, got \"loud\"\n" +
				"log.access (PENSTOCK_LOG_ACCESS): expected true or false, got \"maybe\"\n" +
				"log.format (PENSTOCK_LOG_FORMAT): expected text or json, got \"xml\"",
		},
		"bounds that are too low": {
			"overload: {webhooks: {requests: 1}, searches: 1, account_share: 0, wait: 0s, connections: 9}", "",
			"overload.webhooks.requests (PENSTOCK_OVERLOAD_WEBHOOKS_REQUESTS): expected at least 2, got 1\n" +
				"overload.searches (PENSTOCK_OVERLOAD_SEARCHES): expected at least 2, got 1\n" +
				"overload.account_share (PENSTOCK_OVERLOAD_ACCOUNT_SHARE): expected 1 to 100 percent, got 0\n" +
				"overload.wait (PENSTOCK_OVERLOAD_WAIT): expected more than 0s and at most 10s, got \"0s\"\n" +
				"overload.connections (PENSTOCK_OVERLOAD_CONNECTIONS): expected at least 10, got 9",
		},
		"fewer bytes than one body may have": {
			"overload: {api: {bytes: 15MiB}}", "",
			`overload.api.bytes (PENSTOCK_OVERLOAD_API_BYTES): expected at least 8MiB for one account, which may use 50 % of it, got "15MiB"`,
		},
		"an account's share above 100 percent":                 {"overload: {account_share: 101}", "", "overload.account_share (PENSTOCK_OVERLOAD_ACCOUNT_SHARE): expected 1 to 100 percent, got 101"},
		"a wait that is too long":                              {"overload: {wait: 11s}", "", `overload.wait (PENSTOCK_OVERLOAD_WAIT): expected more than 0s and at most 10s, got "11s"`},
		"an invalid master key":                                {"ledger: {master_key: AAAA}", "", `ledger.master_key (PENSTOCK_LEDGER_MASTER_KEY): expected the base64 of 32 bytes, but key 1 is not`},
		"a master key and a master key file":                   {"ledger: {master_key_file: f, master_key: " + masterKey + "}", "", `ledger.master_key_file (PENSTOCK_LEDGER_MASTER_KEY_FILE): expected either this or ledger.master_key`},
		"an unknown nested key":                                {"redis: {uri: a}", "", `redis.uri: unknown field, did you mean "url"?`},
		"an address without a port":                            {"listen: localhost", "", `listen (PENSTOCK_LISTEN): expected host:port, got "localhost"`},
		"a port beyond the range":                              {"", "PENSTOCK_LISTEN=a:99999", `listen (PENSTOCK_LISTEN): expected host:port, got "a:99999"`},
		"a public URL with another scheme":                     {"public_url: ftp://a", "", "public_url (PENSTOCK_PUBLIC_URL): expected an http or https URL without a query"},
		"an empty data directory":                              {"data_dir: ''", "", "data_dir (PENSTOCK_DATA_DIR): expected a directory"},
		"a secret of blanks":                                   {"receipt_secret: '                '", "", "receipt_secret (PENSTOCK_RECEIPT_SECRET): expected at least 16 characters, got 0"},
		"a secret that is too short":                           {"receipt_secret: fifteen-letters", "", "receipt_secret (PENSTOCK_RECEIPT_SECRET): expected at least 16 characters, got 15"},
		"a token that is too short":                            {"admin_token: fifteen-letters", "", "admin_token (PENSTOCK_ADMIN_TOKEN): expected at least 16 characters, got 15"},
		"a token with a blank":                                 {"", "PENSTOCK_ADMIN_TOKEN=a b", "admin_token (PENSTOCK_ADMIN_TOKEN): expected a token without blanks"},
		"a database URL with another scheme":                   {"database: {url: 'mysql://u:secret@h/d'}", "", "database.url (PENSTOCK_DATABASE_URL): expected a URL such as postgres://user:password@host:5432/database"},
		"an internal URL without a scheme":                     {"internal_url: gw1", "", "internal_url (PENSTOCK_INTERNAL_URL): expected an http or https URL without a query"},
		"a Redis URL with another scheme":                      {"redis: {url: 'http://u:secret@h'}", "", "redis.url (PENSTOCK_REDIS_URL): expected a URL such as redis://host:6379/0, rediss://…, redis+sentinel://… or redis+cluster://…"},
		"several hosts of a single Redis":                      {"redis: {url: 'redis://a:1,b:2'}", "", "redis.url (PENSTOCK_REDIS_URL): expected a URL such as redis://host:6379/0, rediss://…, redis+sentinel://… or redis+cluster://…"},
		"an empty host of a Redis cluster":                     {"redis: {url: 'redis+cluster://a:1,,b:2'}", "", "redis.url (PENSTOCK_REDIS_URL): expected a URL such as redis://host:6379/0, rediss://…, redis+sentinel://… or redis+cluster://…"},
		"an InfluxDB URL without a scheme":                     {"influx: {url: 'localhost:8086'}", "", "influx.url (PENSTOCK_INFLUX_URL): expected an http or https URL"},
		"a token without a URL":                                {"influx: {token: t}", "", "influx.url (PENSTOCK_INFLUX_URL): expected a URL, because a token or organisation is set"},
		"an empty bucket":                                      {"influx: {url: 'http://a', bucket: ''}", "", "influx.bucket (PENSTOCK_INFLUX_BUCKET): expected a bucket, on InfluxDB 1.8 database/retention-policy"},
		"an unknown kind of radio data":                        {"readings: {radio_data: some}", "", `readings.radio_data (PENSTOCK_READINGS_RADIO_DATA): expected full, basic or off, got "some"`},
		"a mail server without a port":                         {"smtp: {addr: mx}", "", `smtp.addr (PENSTOCK_SMTP_ADDR): expected host:port, got "mx"`},
		"a password without a mail server":                     {"smtp: {password: p}", "", "smtp.addr (PENSTOCK_SMTP_ADDR): expected host:port, because a user or password is set"},
		"a session that is too long":                           {"users: {session: 9000h}", "", `users.session (PENSTOCK_USERS_SESSION): expected 5m to 720h, got "9000h0m0s"`},
		"a client without an issuer":                           {"oidc: {client_id: penstock}", "", "oidc.issuer (PENSTOCK_OIDC_ISSUER): expected the provider's URL, because the client is set"},
		"an issuer without TLS":                                {"oidc: {issuer: 'http://idp.example.com', client_id: penstock, viewer: [all]}", "", `oidc.issuer (PENSTOCK_OIDC_ISSUER): expected an https URL without a query, got "http://idp.example.com"`},
		"an issuer without a client":                           {"oidc: {issuer: 'https://idp.example.com', viewer: [all]}", "", "oidc.client_id (PENSTOCK_OIDC_CLIENT_ID): expected the id of the gateway at the provider"},
		"a provider without roles":                             {"oidc: {issuer: 'https://idp.example.com', client_id: penstock}", "", "oidc.role_claim (PENSTOCK_OIDC_ROLE_CLAIM): expected a claim, and values of it for oidc.admin, oidc.operator or oidc.viewer; or oidc.account_claim"},
		"a DKIM selector without a key":                        {"smtp: {addr: 'mx:25', dkim: {selector: gw1}}", "", "smtp.dkim.key_file (PENSTOCK_SMTP_DKIM_KEY_FILE): expected a file, because the domain or selector is set"},
		"a DKIM key without a selector":                        {"smtp: {addr: 'mx:25', dkim: {key_file: k.pem}}", "", `smtp.dkim.selector (PENSTOCK_SMTP_DKIM_SELECTOR): expected the name under which the key is published, got ""`},
		"an invalid DKIM domain":                               {"smtp: {addr: 'mx:25', dkim: {key_file: k.pem, selector: gw1, domain: 'a b'}}", "", `smtp.dkim.domain (PENSTOCK_SMTP_DKIM_DOMAIN): expected a domain, got "a b"`},
		"DKIM without a mail server":                           {"smtp: {dkim: {key_file: k.pem, selector: gw1}}", "", "smtp.addr (PENSTOCK_SMTP_ADDR): expected host:port, because dkim is set"},
		"an invalid sender":                                    {"smtp: {from: nobody}", "", `smtp.from (PENSTOCK_SMTP_FROM): expected a mail address, got "nobody"`},
		"an unknown TLS mode":                                  {"", "PENSTOCK_SMTP_TLS=ssl", `smtp.tls (PENSTOCK_SMTP_TLS): expected starttls, tls or none, got "ssl"`},
		"an invalid address range":                             {"", "PENSTOCK_EGRESS_ALLOW=10.0.0.0/8,ten", `egress.allow[1] (PENSTOCK_EGRESS_ALLOW): expected an address range such as 10.0.0.0/8, got "ten"`},
		"a number instead of a boolean":                        {"", "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=1", `egress.allow_http_callback (PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK): expected true or false, got "1"`},
		"a duration without a unit":                            {"journal: {retention: 7}", "", `journal.retention (PENSTOCK_JOURNAL_RETENTION): expected a duration such as 90s or 2h30m, got "7"`},
		"a retention of zero":                                  {"journal: {retention: 0s}", "", `journal.retention (PENSTOCK_JOURNAL_RETENTION): expected more than 0s, got "0s"`},
		"an unknown unit of a size":                            {"journal: {max_bytes: 2 giga}", "", `journal.max_bytes (PENSTOCK_JOURNAL_MAX_BYTES): expected a size such as 2GiB, 500MB or a number of bytes, got "2 giga"`},
		"a size that is too small":                             {"journal: {max_bytes: 1000}", "", `journal.max_bytes (PENSTOCK_JOURNAL_MAX_BYTES): expected at least 1MiB, got "1kB"`},
		"a negative retry delay":                               {"", "PENSTOCK_DELIVERY_SCHEDULE=5s,-1s", `delivery.schedule[1] (PENSTOCK_DELIVERY_SCHEDULE): expected more than 0s and at most 720h, got "-1s"`},
		"a join wait of zero":                                  {"inbound: {join_wait: 0s}", "", `inbound.join_wait (PENSTOCK_INBOUND_JOIN_WAIT): expected more than 0s and at most 24h, got "0s"`},
		"an answer wait of zero":                               {"", "PENSTOCK_INBOUND_ANSWER_WAIT=0s", `inbound.answer_wait (PENSTOCK_INBOUND_ANSWER_WAIT): expected 10ms to 1m, got "0s"`},
		"a retention that is too short":                        {"delivery: {retention: 1m}", "", `delivery.retention (PENSTOCK_DELIVERY_RETENTION): expected at least 1h, got "1m0s"`},
		"a dead retention that is too short":                   {"delivery: {dead_retention: 1m}", "", `delivery.dead_retention (PENSTOCK_DELIVERY_DEAD_RETENTION): expected at least 1h, or 0s to keep them until they are replayed, got "1m0s"`},
		"an unknown time zone":                                 {"time_zone: Mars", "", `time_zone (PENSTOCK_TIME_ZONE): expected a time zone such as Europe/London, got "Mars"`},
		"an unknown type of carrier":                           {"carriers: [simulator, pigeon]", "", `carriers[1].type: expected simulator, smpp, kannel or http, got "pigeon"`},
		"a simulator with a name":                              {"carriers: {type: simulator, name: a}", "", `carriers[0].name: expected simulator or no name, got "a"`},
		"a simulator with an address":                          {"carriers: {type: simulator, addr: 'h:1'}", "", `carriers[0].addr: expected no value, because a carrier of the type simulator does not have this setting`},
		"an SMPP carrier named simulator":                      {"carriers: {type: smpp, name: simulator, addr: 'h:1'}", "", `carriers[0].name: expected another name than simulator, which is reserved`},
		"an SMPP carrier with invalid prefixes and limits":     {"carriers: {type: smpp, name: a, addr: 'h:1', prefixes: ['+44'], window: -1, per_second: -1, answer_timeout: 1h}", "", "carriers[0].answer_timeout: expected 100ms to 5m, got \"1h0m0s\"\ncarriers[0].prefixes: expected prefixes of 1 to 15 digits, got \"+44\"\ncarriers[0].window: expected 1 to 10000, got -1\ncarriers[0].per_second: expected 0 to 100000, got -1"},
		"a Kannel carrier with a token and a query in its URL": {"carriers: {type: kannel, name: k, url: 'http://h/?a=b', token: x}", "", "carriers[0].token: expected no value, because a carrier of the type kannel does not have this setting\ncarriers[0].url: expected an http or https URL"},
		"an HTTP carrier with an smsc and without a URL":       {"carriers: {type: http, name: h, smsc: x}", "", "carriers[0].smsc: expected no value, because a carrier of the type http does not have this setting\ncarriers[0].url: expected an http or https URL"},
		"an SMPP carrier without settings":                     {"carriers: smpp", "", "carriers[0].name: expected a name of 1 to 40 letters, digits, dots, dashes and underscores, got \"\"\ncarriers[0].addr: expected host:port, got \"\""},
		"two carriers with one name":                           {"carriers: [{type: smpp, name: a, addr: 'h:1'}, {type: smpp, name: a, addr: 'h:2'}]", "", `carriers[1].name: expected a name that no other carrier has, got "a"`},
		"an unknown bind, TLS mode and alphabet":               {"carriers: {type: smpp, name: a, addr: 'h:1', bind: trx, tls: starttls, alphabet: utf8}", "", "carriers[0].bind: expected transceiver, receiver or transmitter, got \"trx\"\ncarriers[0].tls: expected tls or none, got \"starttls\"\ncarriers[0].alphabet: expected gsm7, gsm7-packed or latin1, got \"utf8\""},
		"binds without an address, with an unknown type and with invalid limits": {"carriers: {type: smpp, name: a, binds: [{}, {addr: 'h:1', bind: trx, window: -1, per_second: -1}]}", "", "carriers[0].binds[0].addr: expected host:port, got \"\"\ncarriers[0].binds[1].window: expected 1 to 10000, got -1\ncarriers[0].binds[1].bind: expected transceiver, receiver or transmitter, got \"trx\"\ncarriers[0].binds[1].per_second: expected 0 to 100000, got -1"},
		"an unknown value of gateways":                                           {"carriers: {type: smpp, name: a, addr: 'h:1', gateways: two}", "", "carriers[0].gateways: expected each or one, got \"two\""},
		"a Kannel carrier with binds":                                            {"carriers: {type: kannel, name: k, url: 'http://h/', binds: [{addr: 'h:1'}]}", "", "carriers[0].binds: expected no value, because a carrier of the type kannel does not have this setting"},
		"an invalid password and a long system_id":                               {"carriers: {type: smpp, name: a, addr: 'h:1', password: 'hush hush', system_id: sixteen-letters-}", "", "carriers[0].system_id: expected at most 15 characters of ASCII without blanks\ncarriers[0].password: expected at most 64 characters of ASCII without blanks"},
		"an SMPP carrier with limits of zero":                                    {"carriers: {type: smpp, name: a, addr: 'h:1', window: 0, in_flight: 0, enquire_link: 0s, answer_timeout: 0s}", "", "carriers[0].enquire_link: expected 1s to 1h, got \"0s\"\ncarriers[0].in_flight: expected 1 to 100000, got 0\ncarriers[0].answer_timeout: expected 100ms to 5m, got \"0s\"\ncarriers[0].window: expected 1 to 10000, got 0"},
		"a simulator with a window of zero":                                      {"carriers: {type: simulator, window: 0}", "", "carriers[0].window: expected 1 to 10000, got 0"},
		"an unknown kind of originators":                                         {"carriers: {type: simulator, originators: short}", "", "carriers[0].originators: expected text, alphanumeric or numeric, got \"short\""},
		"an SMPP carrier with limits out of range":                               {"carriers: {type: smpp, name: a, addr: 'h:1', enquire_link: 1ms, in_flight: -1}", "", "carriers[0].enquire_link: expected 1s to 1h, got \"1ms\"\ncarriers[0].in_flight: expected 1 to 100000, got -1"},
		"a CA file without TLS":                                                  {"carriers: {type: smpp, name: a, addr: 'h:1', ca_file: /none}", "", "carriers[0].tls: expected tls, because a ca_file is set"},
		"a missing CA file":                                                      {"carriers: {type: smpp, name: a, addr: 'h:1', tls: tls, ca_file: /none}", "", `carriers[0].ca_file: expected a file that can be read, got "/none"`},
		"a CA file that is not PEM":                                              {"carriers: {type: smpp, name: a, addr: 'h:1', tls: tls, ca_file: config.go}", "", `carriers[0].ca_file: expected a file with certificates in PEM, got "config.go"`},
		"no carriers":                                                            {"carriers: []", "", "carriers: expected at least one, for example simulator"},
		"an unknown type of operator":                                            {"operator: smtp", "", `operator.type: expected simulator or http, got "smtp"`},
		"an operator without a URL":                                              {"operator: http", "", "operator.url: expected an http or https URL without a query"},
		"an operator simulator with a token":                                     {"operator: {token: a}", "", `operator.type: expected http, because url or token is set, got "simulator"`},
		"an operator with settings out of range":                                 {"operator: {type: http, url: 'https://a/b', token: 'a b', timeout: 9s, at_once: 65, report_within: 1s}", "", "operator.token: expected at most 4096 characters of ASCII without blanks\noperator.timeout: expected 100ms to 8s, got \"9s\"\noperator.at_once: expected 1 to 64, got 65\noperator.report_within: expected 1m to 720h, got \"1s\""},
		"an unknown type of lookup":                                              {"lookup: dns", "", `lookup.type: expected simulator or http, got "dns"`},
		"a lookup without a URL":                                                 {"lookup: http", "", "lookup.url: expected an http or https URL"},
		"a lookup with a query that lacks the number":                            {"lookup: {type: http, url: 'https://a/hlr?key=x'}", "", "lookup.url: expected %number in a URL with a query"},
		"a lookup simulator with a URL":                                          {"lookup: {url: 'https://a'}", "", `lookup.type: expected http, because url or token is set, got "simulator"`},
		"a lookup with settings out of range":                                    {"lookup: {type: http, url: 'https://a/%number', token: 'a b', timeout: 1h, cache: -1s}", "", "lookup.token: expected at most 4096 characters of ASCII without blanks\nlookup.timeout: expected 100ms to 1m, got \"1h0m0s\"\nlookup.cache: expected 0s to 720h, got \"-1s\""},
		"several mistakes":                                                       {"listen: x\ndata_dir: ''", "PENSTOCK_TIME_ZONE=Local", "time_zone (PENSTOCK_TIME_ZONE): expected a time zone such as Europe/London, got \"Local\"\nlisten (PENSTOCK_LISTEN): expected host:port, got \"x\"\ndata_dir (PENSTOCK_DATA_DIR): expected a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse([]byte(tc.file), []string{tc.env})
			if err == nil || err.Error() != tc.want {
				t.Errorf("got:\n%v\nwant:\n%s", err, tc.want)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	if _, err := config.Load(filepath.Join(t.TempDir(), "none.yaml"), nil); err == nil || !strings.HasPrefix(err.Error(), "config: open ") {
		t.Errorf("missing file: got %v", err)
	}
	path := filepath.Join(t.TempDir(), "p.yaml")
	relaytest.NoError(t, os.WriteFile(path, []byte("listen: x"), 0o600))
	if _, err := config.Load(path, nil); err == nil || !strings.HasPrefix(err.Error(), "config "+path+":\nlisten (PENSTOCK_LISTEN): ") {
		t.Errorf("invalid file: got %v", err)
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	c, err := config.Parse([]byte(`
admin_token: hush1-0123456789
redis: {url: "redis+sentinel://me:hush2@a:1,b:2/m?password=hush3"}
influx: {url: "http://me:hush4@i:8086", token: hush5}
smtp: {addr: "m:25", username: me, password: hush6}
carriers: [simulator, {type: smpp, name: one, addr: "h:2775", system_id: me, password: hush7, binds: [{password: hush13}]}]
lookup: {type: http, url: "https://me:hush8@hlr/%number?key=hush9", token: hush10}
operator: {type: http, url: "https://me:hush11@operator/v1", token: hush12}`), nil)
	relaytest.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("settings", "config", c)
	for _, text := range []string{fmt.Sprintf("%+v", c.Redacted()), log.String()} {
		if strings.Contains(text, "hush") || !strings.Contains(text, "redis+sentinel://***@a:1,b:2/m?***") {
			t.Errorf("a secret is shown or the Redis URL is not redacted: %s", text)
		}
	}
	relaytest.Equal(t, "the secrets of the receiver of Redacted", []string{c.AdminToken, c.Carriers[1].Password, c.Lookup.Token}, []string{"hush1-0123456789", "hush7", "hush10"})
	relaytest.Equal(t, "the password of a bind", c.Carriers[1].Binds[0].Password, "hush13")
	relaytest.Equal(t, "lookup.cache", c.Lookup.Cache, 10*time.Minute)
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]string{"2GiB": "2GiB", "500 MB": "500MB", "1024": "1KiB", "10kB": "10kB", "7B": "7", "0": "0", "1TiB": "1TiB"} {
		var b config.Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b.String() != want {
			t.Errorf("UnmarshalText(%s) = %s, %v, want %s", text, b, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "1.5GiB", "-1", "9999999999TiB", "1 Gi", "2gib"} {
		if err := new(config.Bytes).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	text, err := os.ReadFile(example)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, "10.0.0.0/8")
	f.Add([]byte("redis: {url: 'redis+cluster://a,b'}"), "")
	f.Fuzz(func(t *testing.T, file []byte, allow string) {
		c, err := config.Parse(file, []string{"PENSTOCK_EGRESS_ALLOW=" + allow})
		if err == nil && (c.TimeZone == nil || c.Listen == "" || c.PublicURL == "") {
			t.Errorf("a valid configuration with listen %q, public_url %q and time_zone %v", c.Listen, c.PublicURL, c.TimeZone)
		}
	})
}

func TestOriginatorsThatACarrierAccepts(t *testing.T) {
	for originators, want := range map[string]string{"": "A&B Shop24 44", "text": "A&B Shop24 44", "alphanumeric": "Shop24 44", "numeric": "44"} {
		c, got := config.Carrier{Originators: originators}, []string{}
		for _, originator := range []string{"A&B", "Shop24", "44"} {
			if c.AcceptsOriginator(originator) {
				got = append(got, originator)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("originators %q: accepts %q, want %s", originators, got, want)
		}
	}
}
