package config

import (
	"log/slog"
	"net/netip"
	"strings"
	"time"
	"unicode"
)

// Config has all settings, validated and with defaults.
type Config struct {
	// Listen is the address of the listener, host:port.
	Listen string `json:"listen"`
	// PublicURL is the URL at which clients reach the gateway, without a slash at the end.
	PublicURL string `json:"public_url"`
	// DataDir holds the journal, the embedded back ends, and generated secrets.
	DataDir string `json:"data_dir"`
	// AdminToken is the token of the admin API. If it is empty, a token is generated and stored
	// in the data directory.
	AdminToken string `json:"admin_token" secret:"yes"`
	// Inventory is the path of the inventory that is applied at the start, or empty.
	Inventory string `json:"inventory"`
	// TrustedProxies are the addresses of proxies whose X-Forwarded-For header is used.
	TrustedProxies []netip.Prefix `json:"trusted_proxies"`
	// InternalURL is the URL at which other gateways on the same database reach this one, without
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
	// TimeZone is the time zone of the placeholders %time and %smsTime.
	TimeZone *time.Location `json:"time_zone"`
	// ReceiptSecret signs the URLs to which carriers send receipts. If it is empty, a secret is
	// generated and stored in the database.
	ReceiptSecret string    `json:"receipt_secret" secret:"yes"`
	Carriers      []Carrier `json:"carriers" strict:"one" env:"-"`
	Operator      Operator  `json:"operator" env:"-"`
	Lookup        Lookup    `json:"lookup" env:"-"`
}

// Database configures the database of the records.
type Database struct {
	// URL has the scheme postgres and may name several hosts; empty means SQLite in the
	// data directory.
	URL string `json:"url" secret:"url"`
}

// Redis configures the store of timers and of data that can be rebuilt.
type Redis struct {
	// URL has the scheme redis, rediss, redis+sentinel or redis+cluster; empty means an embedded
	// server in memory.
	URL string `json:"url" secret:"url"`
}

// Influx configures the store of the readings.
type Influx struct {
	URL    string `json:"url" secret:"url"` // empty means the embedded store
	Token  string `json:"token" secret:"yes"`
	Org    string `json:"org"`
	Bucket string `json:"bucket"` // on InfluxDB 1.8 database/retention-policy
}

// Readings configures which readings are stored.
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
	Addr     string `json:"addr"` // host:port; empty means the sink in the data directory
	Username string `json:"username"`
	Password string `json:"password" secret:"yes"`
	From     string `json:"from"`
	TLS      string `json:"tls"` // starttls, tls or none
	DKIM     DKIM   `json:"dkim"`
}

// DKIM configures the signatures of mails; without a key they are not signed.
type DKIM struct {
	Domain   string `json:"domain"` // empty means the domain of the sender
	Selector string `json:"selector"`
	KeyFile  string `json:"key_file"` // PEM, RSA or Ed25519
}

// Egress restricts the targets of outgoing requests.
type Egress struct {
	// Allow lists address ranges that requests may reach in addition to public addresses.
	Allow []netip.Prefix `json:"allow"`
	// AllowHTTPCallback allows callback URLs of accounts with the scheme http.
	AllowHTTPCallback bool `json:"allow_http_callback"`
}

// Journal limits the journal of each kind of traffic. Unprocessed entries are never removed.
type Journal struct {
	Retention time.Duration `json:"retention"`
	MaxBytes  Bytes         `json:"max_bytes"`
}

// Inbound configures the answers to frames and how the parts of a message are joined.
type Inbound struct {
	// AnswerWait is the time for which the generic webhook waits for the readings of a post
	// before it answers without them.
	AnswerWait time.Duration `json:"answer_wait"`
	// JoinWait is the time for which a message waits for missing parts after its first part.
	JoinWait time.Duration `json:"join_wait"`
}

// Delivery configures the retries and the retention of deliveries.
type Delivery struct {
	// Schedule lists the pauses between attempts. With n pauses there are n+1 attempts.
	Schedule []time.Duration `json:"schedule"`
	// Retention is the time for which finished deliveries are stored.
	Retention time.Duration `json:"retention"`
	// DeadRetention is the time for which dead deliveries are stored; 0 means until a replay.
	DeadRetention time.Duration `json:"dead_retention"`
}

// Overload limits the requests in progress; further requests get 503.
type Overload struct {
	// Webhooks limits requests that are written to the journal: webhooks, inbound messages,
	// receipts and call records. API limits REST and SOAP.
	Webhooks RequestLimit `json:"webhooks"`
	API      RequestLimit `json:"api"`
	// Searches limits the concurrent searches and long lists of REST and the admin API.
	Searches int `json:"searches"`
	// AccountShare is the largest share of each limit that an account may use, in percent.
	AccountShare int `json:"account_share"`
	// Wait is the time for which a request, except a search, waits for other requests to end
	// before it gets 503.
	Wait time.Duration `json:"wait"`
	// Connections limits the open connections.
	Connections int `json:"connections"`
}

// Rules limits the actions of rules; further actions are skipped.
type Rules struct {
	ActionsPerFrame  int `json:"actions_per_frame"`
	ActionsPerMinute int `json:"actions_per_minute"` // of an account
}

// Log configures the log on standard error.
type Log struct {
	Level  slog.Level `json:"level"`
	Format string     `json:"format"` // text or json
	// Access logs every request.
	Access bool `json:"access"`
}

// TLS configures the certificate of the listener; without one it serves HTTP.
type TLS struct {
	CertFile string `json:"cert_file"` // PEM, with the chain
	KeyFile  string `json:"key_file"`  // PEM
}

// Tracing configures the export of spans to an OpenTelemetry collector.
type Tracing struct {
	// URL is the URL of the collector's OTLP/HTTP receiver, without /v1/traces; empty disables
	// tracing.
	URL string `json:"url" secret:"url"`
	// Sample is the share of traces that are sent, 0 to 1.
	Sample float64 `json:"sample"`
	// Headers are sent with the spans: name=value,name=value.
	Headers string `json:"headers" secret:"yes"`
}

// HeaderFields returns the values of Headers by name.
func (t Tracing) HeaderFields() map[string]string {
	fields := make(map[string]string)
	for field := range strings.SplitSeq(t.Headers, ",") {
		if name, value, ok := strings.Cut(field, "="); ok {
			fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return fields
}

// Debug configures the listener of Go's profiles.
type Debug struct {
	// Listen is a loopback address, host:port; empty disables the listener.
	Listen string `json:"listen"`
}

// The values of Log.Format.
const (
	LogText = "text"
	LogJSON = "json"
)

// RequestLimit limits the concurrent requests of a kind.
type RequestLimit struct {
	Requests int   `json:"requests"`
	Bytes    Bytes `json:"bytes"` // memory of the bodies
}

// Users configures the sign-in to the admin API and the console.
type Users struct {
	// Session is the duration of a sign-in.
	Session time.Duration `json:"session"`
}

// OIDC configures sign-in through an OpenID Connect provider.
type OIDC struct {
	// Issuer is the URL of the provider, without /.well-known/openid-configuration; empty
	// disables this sign-in.
	Issuer       string `json:"issuer"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret" secret:"yes"`
	// Scopes are requested in addition to openid.
	Scopes []string `json:"scopes"`
	// NameClaim is the claim of the ID token that names the user.
	NameClaim string `json:"name_claim"`
	// RoleClaim is the claim, a text or a list, that selects the role of a user. The first
	// of Admin, Operator and Viewer that contains one of its values is the role.
	RoleClaim string   `json:"role_claim"`
	Admin     []string `json:"admin"`
	Operator  []string `json:"operator"`
	Viewer    []string `json:"viewer"`
	// AccountClaim is the claim with the account of a user who has none of these roles. If it is
	// empty, these users are refused.
	AccountClaim string `json:"account_claim"`
}

// Ledger configures the master keys of ledgers, and the publication of signed heads.
type Ledger struct {
	// MasterKey encrypts the keys of accounts: the base64 of 32 bytes, or several keys
	// separated by commas, newest first. Empty means the keys of MasterKeyFile.
	MasterKey string `json:"master_key" secret:"yes"`
	// MasterKeyFile is the path of a file with one master key per line. Without this path and
	// MasterKey, a key is generated and stored in the data directory.
	MasterKeyFile string `json:"master_key_file"`
	// CheckpointDir is the directory in which each ledger's newest signed head is published
	// as a file; empty disables the publication.
	CheckpointDir string `json:"checkpoint_dir"`
	// CheckpointCallback sends each new signed head to the accounts' callbacks.
	CheckpointCallback bool `json:"checkpoint_callback"`
}

// MasterKeys lists the keys of MasterKey.
func (l Ledger) MasterKeys() []string {
	return strings.FieldsFunc(l.MasterKey, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// Simulator is the type of a simulated back end.
const Simulator = "simulator"

// The values of SMTP.TLS.
const (
	StartTLS  = "starttls"
	DirectTLS = "tls"
	NoTLS     = "none"
)

// Default returns the settings of a gateway with nothing configured, without the settings that
// Load derives from others: public_url, internal_url, smtp.from, smtp.tls, smtp.dkim.domain
// and the limits of back ends.
func Default() Config {
	const s, m, h = time.Second, time.Minute, time.Hour
	london, err := parseZone("Europe/London")
	if err != nil {
		london = time.UTC // cannot happen: the zone is compiled in
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
			Webhooks: RequestLimit{Requests: 512, Bytes: 32 << 20}, API: RequestLimit{Requests: 256, Bytes: 64 << 20},
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
