package config

import (
	"log/slog"
	"net/netip"
	"strings"
	"time"
	"unicode"
)

// Config is every setting, complete and valid.
type Config struct {
	// Listen is the address the daemon serves on, host:port.
	Listen string `json:"listen"`
	// PublicURL is the gateway's URL for others, without a slash at the end.
	PublicURL string `json:"public_url"`
	// DataDir holds the journal, the embedded back ends, and generated secrets.
	DataDir string `json:"data_dir"`
	// AdminToken guards /admin; empty: generated and kept in the data directory.
	AdminToken string `json:"admin_token" secret:"yes"`
	// Inventory is the file applied at start; empty: none.
	Inventory string `json:"inventory"`
	// TrustedProxies are the addresses whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix `json:"trusted_proxies"`
	// InternalURL is this gateway's URL for the other gateways on the same database, without
	// a slash at the end.
	InternalURL string   `json:"internal_url"`
	Database    Database `json:"database"`
	Redis       Redis    `json:"redis"`
	Influx      Influx   `json:"influx"`
	Readings    Readings `json:"readings"`
	SMTP        SMTP     `json:"smtp"`
	Egress      Egress   `json:"egress"`
	Journal     Journal  `json:"journal"`
	Inbound     Inbound  `json:"inbound"`
	Delivery    Delivery `json:"delivery"`
	Ledger      Ledger   `json:"ledger"`
	Overload    Overload `json:"overload"`
	Rules       Rules    `json:"rules"`
	Log         Log      `json:"log"`
	Users       Users    `json:"users"`
	OIDC        OIDC     `json:"oidc"`
	TLS         TLS      `json:"tls"`
	Debug       Debug    `json:"debug"`
	Tracing     Tracing  `json:"tracing"`
	// TimeZone is that of %time and %smsTime.
	TimeZone *time.Location `json:"time_zone"`
	// ReceiptSecret signs the addresses that carriers report to; empty: generated
	// and kept in the data directory.
	ReceiptSecret string    `json:"receipt_secret" secret:"yes"`
	Carriers      []Carrier `json:"carriers" strict:"one" env:"-"`
	Operator      Operator  `json:"operator" env:"-"`
	Lookup        Lookup    `json:"lookup" env:"-"`
}

// Database configures the store of the records.
type Database struct {
	// URL has the scheme postgres and may name several hosts; empty: SQLite in the
	// data directory.
	URL string `json:"url" secret:"url"`
}

// Redis holds the queue's timers and data that can be rebuilt.
type Redis struct {
	// URL has the scheme redis, rediss, redis+sentinel or redis+cluster; empty: in
	// the process, in memory.
	URL string `json:"url" secret:"url"`
}

// Influx configures the store of the readings.
type Influx struct {
	URL    string `json:"url" secret:"url"` // empty: the embedded store
	Token  string `json:"token" secret:"yes"`
	Org    string `json:"org"`
	Bucket string `json:"bucket"` // on InfluxDB 1.8 database/retention-policy
}

// Readings configures what is stored in InfluxDB or the embedded store.
type Readings struct {
	RadioData string `json:"radio_data"` // full, basic or off
}

// The values of Readings.RadioData.
const (
	RadioFull  = "full"
	RadioBasic = "basic"
	RadioOff   = "off"
)

// SMTP configures outgoing mail.
type SMTP struct {
	Addr     string `json:"addr"` // host:port; empty: the sink in the data directory
	Username string `json:"username"`
	Password string `json:"password" secret:"yes"`
	From     string `json:"from"`
	TLS      string `json:"tls"` // starttls, tls or none
	DKIM     DKIM   `json:"dkim"`
}

// DKIM is the key that signs mails; without one they are not signed.
type DKIM struct {
	Domain   string `json:"domain"` // empty: the sender's
	Selector string `json:"selector"`
	KeyFile  string `json:"key_file"` // PEM, RSA or Ed25519
}

// Egress restricts the targets of outgoing requests.
type Egress struct {
	// Allow lists ranges that are reachable in addition to the public addresses.
	Allow []netip.Prefix `json:"allow"`
	// AllowHTTPCallback lets account callbacks be http.
	AllowHTTPCallback bool `json:"allow_http_callback"`
}

// Journal bounds the journal of each kind of traffic. What is not processed is never removed.
type Journal struct {
	Retention time.Duration `json:"retention"`
	MaxBytes  Bytes         `json:"max_bytes"`
}

// Inbound configures the answers to frames and how the parts of a message are joined.
type Inbound struct {
	// AnswerWait is the time for which the generic webhook waits for the readings of a post
	// before it answers without them.
	AnswerWait time.Duration `json:"answer_wait"`
	// JoinWait is the time for which a message waits for its missing parts, counted from the
	// first that came.
	JoinWait time.Duration `json:"join_wait"`
}

// Delivery configures when a failed delivery is tried again.
type Delivery struct {
	// Schedule holds the pauses between attempts: n entries, n+1 attempts.
	Schedule []time.Duration `json:"schedule"`
	// Retention is the time for which finished deliveries stay listed.
	Retention time.Duration `json:"retention"`
	// DeadRetention is the same for dead deliveries; 0: until they are replayed.
	DeadRetention time.Duration `json:"dead_retention"`
}

// Overload bounds the requests waiting in the gateway; further ones are refused with 503.
type Overload struct {
	// Webhooks bounds what is journalled: webhooks, inbound messages, receipts, call
	// records. API bounds REST and SOAP.
	Webhooks Bound `json:"webhooks"`
	API      Bound `json:"api"`
	// Searches bounds the searches and long lists of REST and the admin API.
	Searches int `json:"searches"`
	// AccountShare is the most that one account may use of each bound, in percent.
	AccountShare int `json:"account_share"`
	// Wait is the time for which a request waits for others to end before it is refused.
	Wait time.Duration `json:"wait"`
	// Connections bounds the open connections.
	Connections int `json:"connections"`
}

// Rules bounds the actions of rules; those beyond are not performed.
type Rules struct {
	ActionsPerFrame  int `json:"actions_per_frame"`
	ActionsPerMinute int `json:"actions_per_minute"` // of an account
}

// Log configures the log on standard error.
type Log struct {
	Level  slog.Level `json:"level"`
	Format string     `json:"format"` // text or json
	// Access has a line written for every request.
	Access bool `json:"access"`
}

// TLS is the certificate of the listener; without one it serves HTTP.
type TLS struct {
	CertFile string `json:"cert_file"` // PEM, with the chain
	KeyFile  string `json:"key_file"`  // PEM
}

// Tracing sends the spans of traffic to an OpenTelemetry collector.
type Tracing struct {
	// URL is that of the collector's OTLP/HTTP receiver, without /v1/traces; empty:
	// nothing is traced.
	URL string `json:"url" secret:"url"`
	// Sample is the share of traces that are kept, 0 to 1.
	Sample float64 `json:"sample"`
	// Headers are sent with the spans: name=value,name=value.
	Headers string `json:"headers" secret:"yes"`
}

// HeaderFields returns Headers by their names.
func (t Tracing) HeaderFields() map[string]string {
	fields := make(map[string]string)
	for field := range strings.SplitSeq(t.Headers, ",") {
		if name, value, ok := strings.Cut(field, "="); ok {
			fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return fields
}

// Debug serves Go's profiles.
type Debug struct {
	// Listen is a loopback address, host:port; empty: they are not served.
	Listen string `json:"listen"`
}

// The values of Log.Format.
const (
	LogText = "text"
	LogJSON = "json"
)

// Bound limits the requests of a kind that are in progress at a time.
type Bound struct {
	Requests int   `json:"requests"`
	Bytes    Bytes `json:"bytes"` // memory of their bodies
}

// Users configures the sign-in to the admin API and the console.
type Users struct {
	// Session is the duration of a sign-in.
	Session time.Duration `json:"session"`
}

// OIDC is the OpenID Connect provider through which users may sign in.
type OIDC struct {
	// Issuer is the URL below which the provider's configuration is; empty: there is
	// no provider.
	Issuer       string `json:"issuer"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret" secret:"yes"`
	// Scopes are requested in addition to openid.
	Scopes []string `json:"scopes"`
	// NameClaim is the claim of the ID token that names the user.
	NameClaim string `json:"name_claim"`
	// RoleClaim is the claim, a text or a list, one of whose values gives a role: those
	// of Admin, Operator and Viewer, in this order.
	RoleClaim string   `json:"role_claim"`
	Admin     []string `json:"admin"`
	Operator  []string `json:"operator"`
	Viewer    []string `json:"viewer"`
	// AccountClaim is the claim that names the account of a user without any of these
	// roles; empty: such a user is refused.
	AccountClaim string `json:"account_claim"`
}

// Ledger holds the master keys that encrypt the secrets of ledgers and tokens.
type Ledger struct {
	// MasterKey wraps every account's keys: the base64 of 32 bytes, or several of
	// these with commas between, newest first. Empty: those of the file.
	MasterKey string `json:"master_key" secret:"yes"`
	// MasterKeyFile holds them a line each; empty: generated and kept in the data
	// directory.
	MasterKeyFile string `json:"master_key_file"`
	// CheckpointDir is the directory in which each ledger's newest signed head is published
	// as a file; empty: nowhere.
	CheckpointDir string `json:"checkpoint_dir"`
	// CheckpointCallback sends each new signed head to the accounts' callbacks.
	CheckpointCallback bool `json:"checkpoint_callback"`
}

// MasterKeys lists the keys of MasterKey.
func (l Ledger) MasterKeys() []string {
	return strings.FieldsFunc(l.MasterKey, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// Simulator is the type of back end that only pretends.
const Simulator = "simulator"

// The values of SMTP.TLS.
const (
	StartTLS  = "starttls"
	DirectTLS = "tls"
	NoTLS     = "none"
)

// Default returns the settings of a daemon with nothing configured. What is
// derived (public_url, smtp.from, smtp.tls, the limits of back ends) is still empty.
func Default() Config {
	const s, m, h = time.Second, time.Minute, time.Hour
	london, err := zone("Europe/London")
	if err != nil {
		london = time.UTC // the zone is compiled in
	}
	return Config{
		Listen:   "127.0.0.1:8080",
		DataDir:  "./data",
		Influx:   Influx{Bucket: "penstock"},
		Readings: Readings{RadioData: RadioFull},
		Journal:  Journal{Retention: 168 * time.Hour, MaxBytes: 2 << 30},
		Inbound:  Inbound{AnswerWait: 3 * time.Second, JoinWait: 5 * time.Minute},
		Delivery: Delivery{Schedule: []time.Duration{5 * s, 30 * s, 2 * m, 10 * m, 30 * m, h, 3 * h, 6 * h, 12 * h, 24 * h}, Retention: 720 * time.Hour},
		Overload: Overload{
			Webhooks: Bound{Requests: 512, Bytes: 32 << 20}, API: Bound{Requests: 256, Bytes: 64 << 20},
			Searches: 8, AccountShare: 50, Wait: 250 * time.Millisecond, Connections: 10_000,
		},
		Rules:    Rules{ActionsPerFrame: 100, ActionsPerMinute: 6000},
		Log:      Log{Format: LogText},
		Tracing:  Tracing{Sample: 1},
		Users:    Users{Session: 12 * time.Hour},
		OIDC:     OIDC{Scopes: []string{"profile", "email"}, NameClaim: "preferred_username", RoleClaim: "groups"},
		TimeZone: london,
		Carriers: []Carrier{{Type: Simulator, Name: Simulator, Window: 1000}},
		Operator: Operator{Type: Simulator},
		Lookup:   Lookup{Type: Simulator, Cache: 10 * time.Minute},
	}
}
