package config

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/penstock/penstock/config/strict"
)

// derive sets empty settings that follow from other settings, and removes the slashes at the end
// of URLs.
func (c *Config) derive() {
	if c.PublicURL == "" {
		c.PublicURL = c.listenURL()
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	if c.InternalURL == "" {
		c.InternalURL = c.listenURL()
		if c.TLS.CertFile != "" {
			c.InternalURL = c.PublicURL // it has the name of the certificate
		}
	}
	c.InternalURL = strings.TrimRight(c.InternalURL, "/")
	for i := range c.Carriers {
		c.Carriers[i].derive()
	}
	c.Lookup.derive()
	c.Operator.derive()
	if c.SMTP.From == "" {
		c.SMTP.From = "penstock@" + mailDomain(c.PublicURL)
	}
	if address, err := mail.ParseAddress(c.SMTP.From); err == nil && c.SMTP.DKIM.KeyFile != "" && c.SMTP.DKIM.Domain == "" {
		c.SMTP.DKIM.Domain = address.Address[strings.LastIndexByte(address.Address, '@')+1:]
	}
	if c.SMTP.TLS == "" {
		c.SMTP.TLS = StartTLS
		if smtpHost, _, _ := net.SplitHostPort(c.SMTP.Addr); isLoopback(smtpHost) {
			c.SMTP.TLS = NoTLS // local traffic; there are no certificates for localhost
		}
	}
}

// listenURL returns a URL of the listener for clients on this machine.
func (c *Config) listenURL() string {
	host, port, _ := net.SplitHostPort(c.Listen)
	if addr, err := netip.ParseAddr(host); host == "" || err == nil && addr.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http://"
	if c.TLS.CertFile != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}

// LocalURL returns the gateway's URL for commands on this machine. With TLS it is PublicURL,
// which has the name of the certificate.
func (c *Config) LocalURL() string {
	if c.TLS.CertFile != "" {
		return c.PublicURL
	}
	return "http://" + c.Listen
}

func mailDomain(publicURL string) string {
	if u, err := url.Parse(publicURL); err == nil {
		if _, err := netip.ParseAddr(u.Hostname()); err != nil && u.Hostname() != "" {
			return u.Hostname()
		}
	}
	return "localhost"
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// minToken is the smallest number of characters of admin_token and receipt_secret: shorter ones
// can be guessed.
const minToken = 16

// TokenProblem returns the reason why a text is not a valid token of the admin or of an account;
// empty if the text is valid.
func TokenProblem(token string) string {
	if strings.ContainsFunc(token, unicode.IsSpace) {
		return "expected a token without blanks"
	}
	if n := len([]rune(token)); n < minToken {
		return fmt.Sprintf("expected at least %d characters, got %d", minToken, n)
	}
	return ""
}

func (c *Config) validate(m *strict.Mistakes) {
	m.AddIf(!isHostPort(c.Listen, true), "listen", "expected host:port, got %q", c.Listen)
	for key, raw := range map[string]string{"public_url": c.PublicURL, "internal_url": c.InternalURL} {
		if u, err := url.Parse(raw); !m.Has("listen") && (err != nil || !isWebURL(u) || u.RawQuery != "" || u.User != nil) {
			m.Add(key, "expected an http or https URL without a query")
		}
	}
	m.AddIf(c.DataDir == "", "data_dir", "expected a directory")
	if problem := TokenProblem(c.AdminToken); c.AdminToken != "" && problem != "" {
		m.Add("admin_token", "%s", problem)
	}
	if n := utf8.RuneCountInString(strings.TrimSpace(c.ReceiptSecret)); c.ReceiptSecret != "" && n < minToken {
		m.Add("receipt_secret", "expected at least %d characters, got %d", minToken, n)
	}
	c.validateStores(m)
	c.validateMail(m)
	c.validateTraffic(m)
	c.validateOverload(m)
	c.validateCarriers(m)
	c.Operator.validate(m)
	c.Lookup.validate(m)
	c.validateListeners(m)
	c.validateSignIn(m)
}

func (c *Config) validateListeners(m *strict.Mistakes) {
	m.AddIf(c.TLS.CertFile != "" && c.TLS.KeyFile == "", "tls.key_file", "expected a file, because tls.cert_file is set")
	m.AddIf(c.TLS.KeyFile != "" && c.TLS.CertFile == "", "tls.cert_file", "expected a file, because tls.key_file is set")
	host, _, _ := net.SplitHostPort(c.Debug.Listen)
	if c.Debug.Listen != "" && (!isHostPort(c.Debug.Listen, true) || !isLoopback(host)) {
		m.Add("debug.listen", "expected host:port of a loopback address such as 127.0.0.1:6060, got %q: profiles hold secrets", c.Debug.Listen)
	}
	oneOf(m, "log.format", c.Log.Format, LogText, LogJSON)
	t := c.Tracing
	if u, err := url.Parse(t.URL); t.URL != "" && (err != nil || !isWebURL(u) || u.RawQuery != "") {
		m.Add("tracing.url", "expected the http or https URL of a collector, such as http://127.0.0.1:4318")
	}
	m.AddIf(!(t.Sample >= 0 && t.Sample <= 1), "tracing.sample", "expected 0 to 1, got %g", t.Sample)
	for field := range strings.SplitSeq(t.Headers, ",") {
		if name, _, ok := strings.Cut(field, "="); t.Headers != "" && (!ok || strings.TrimSpace(name) == "" || strings.ContainsAny(field, "\r\n")) {
			m.Add("tracing.headers", "expected name=value, and more after a comma")
		}
	}
}

func (c *Config) validateSignIn(m *strict.Mistakes) {
	if s := c.Users.Session; s < 5*time.Minute || s > 30*24*time.Hour {
		m.Add("users.session", "expected 5m to 720h, got %q", s)
	}
	o := c.OIDC
	if o.Issuer == "" {
		m.AddIf(o.ClientID != "" || o.ClientSecret != "", "oidc.issuer", "expected the provider's URL, because the client is set")
		return
	}
	u, err := url.Parse(o.Issuer)
	if err != nil || !isWebURL(u) || u.RawQuery != "" || u.User != nil || u.Scheme != "https" && !isLoopback(u.Hostname()) {
		m.Add("oidc.issuer", "expected an https URL without a query, got %q", o.Issuer)
	}
	m.AddIf(o.ClientID == "", "oidc.client_id", "expected the id of the gateway at the provider")
	m.AddIf(o.NameClaim == "", "oidc.name_claim", "expected a claim that names the user")
	if o.RoleClaim == "" || len(o.Admin)+len(o.Operator)+len(o.Viewer) == 0 && o.AccountClaim == "" {
		m.Add("oidc.role_claim", "expected a claim, and values of it for oidc.admin, oidc.operator or oidc.viewer; or oidc.account_claim")
	}
}

// largestBody is the memory in bytes of the largest valid body, as sent and inflated. With a
// smaller limit, the gateway would always refuse such a body.
const largestBody = 8 << 20

func (c *Config) validateOverload(m *strict.Mistakes) {
	o := c.Overload
	for name, b := range map[string]RequestLimit{"overload.webhooks": o.Webhooks, "overload.api": o.API} {
		m.AddIf(b.Requests < 2, name+".requests", "expected at least 2, got %d", b.Requests)
		m.AddIf(o.AccountShare >= 1 && b.Bytes/100*Bytes(o.AccountShare) < largestBody, name+".bytes",
			"expected at least 8MiB for one account, which may use %d %% of it, got %q", o.AccountShare, b.Bytes)
	}
	m.AddIf(o.Searches < 2, "overload.searches", "expected at least 2, got %d", o.Searches)
	m.AddIf(o.AccountShare < 1 || o.AccountShare > 100, "overload.account_share", "expected 1 to 100 percent, got %d", o.AccountShare)
	m.AddIf(o.Wait <= 0 || o.Wait > 10*time.Second, "overload.wait", "expected more than 0s and at most 10s, got %q", o.Wait)
	m.AddIf(c.Rules.ActionsPerFrame < 1, "rules.actions_per_frame", "expected at least 1, got %d", c.Rules.ActionsPerFrame)
	m.AddIf(c.Rules.ActionsPerMinute < 1, "rules.actions_per_minute", "expected at least 1, got %d", c.Rules.ActionsPerMinute)
	m.AddIf(o.Connections < 10, "overload.connections", "expected at least 10, got %d", o.Connections)
}

// escapeAdvice returns advice for a URL that may have a password with unescaped characters.
func escapeAdvice(raw string) string {
	if strings.ContainsAny(raw, "#%") || strings.Count(raw, "@") > 1 {
		return "; in a password write # as %23, % as %25, @ as %40 and / as %2F"
	}
	return ""
}

func (c *Config) validateStores(m *strict.Mistakes) {
	// No message quotes a URL, because it may contain a password.
	if c.Database.URL != "" && !hasValidHosts(c.Database.URL, nil, []string{"postgres", "postgresql"}) {
		m.Add("database.url", "expected a URL such as postgres://user:password@host:5432/database%s", escapeAdvice(c.Database.URL))
	}
	validRedis := hasValidHosts(c.Redis.URL, []string{"redis", "rediss"}, []string{"redis+sentinel", "redis+cluster"})
	m.AddIf(c.Redis.URL != "" && !validRedis, "redis.url", "expected a URL such as redis://host:6379/0, rediss://…, redis+sentinel://… or redis+cluster://…%s", escapeAdvice(c.Redis.URL))
	if u, err := url.Parse(c.Influx.URL); c.Influx.URL != "" && (err != nil || !isWebURL(u)) {
		m.Add("influx.url", "expected an http or https URL")
	}
	m.AddIf(c.Influx.URL != "" && c.Influx.Bucket == "", "influx.bucket", "expected a bucket, on InfluxDB 1.8 database/retention-policy")
	m.AddIf(c.Influx.URL == "" && (c.Influx.Token != "" || c.Influx.Org != ""), "influx.url", "expected a URL, because a token or organisation is set")
	oneOf(m, "readings.radio_data", c.Readings.RadioData, RadioFull, RadioBasic, RadioOff)
	m.AddIf(c.Journal.Retention <= 0, "journal.retention", "expected more than 0s, got %q", c.Journal.Retention)
	m.AddIf(c.Journal.MaxBytes < 1<<20, "journal.max_bytes", "expected at least 1MiB, got %q", c.Journal.MaxBytes)
}

func (c *Config) validateMail(m *strict.Mistakes) {
	m.AddIf(c.SMTP.Addr != "" && !isHostPort(c.SMTP.Addr, false), "smtp.addr", "expected host:port, got %q", c.SMTP.Addr)
	if _, err := mail.ParseAddress(c.SMTP.From); err != nil && !m.Has("public_url") {
		m.Add("smtp.from", "expected a mail address, got %q", c.SMTP.From)
	}
	oneOf(m, "smtp.tls", c.SMTP.TLS, StartTLS, DirectTLS, NoTLS)
	m.AddIf(c.SMTP.Addr == "" && (c.SMTP.Username != "" || c.SMTP.Password != ""), "smtp.addr", "expected host:port, because a user or password is set")
	d := c.SMTP.DKIM
	if d == (DKIM{}) {
		return
	}
	m.AddIf(d.KeyFile == "", "smtp.dkim.key_file", "expected a file, because the domain or selector is set")
	m.AddIf(!isDomainName(d.Selector), "smtp.dkim.selector", "expected the name under which the key is published, got %q", d.Selector)
	m.AddIf(d.Domain != "" && !isDomainName(d.Domain), "smtp.dkim.domain", "expected a domain, got %q", d.Domain)
	m.AddIf(c.SMTP.Addr == "", "smtp.addr", "expected host:port, because dkim is set")
}

// isDomainName reports whether the labels of s have letters, digits, hyphens and underscores only.
func isDomainName(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// maxPause keeps sums of times in range; sensible pauses are much shorter.
const maxPause = 30 * 24 * time.Hour

func (c *Config) validateTraffic(m *strict.Mistakes) {
	m.AddIf(c.Inbound.JoinWait <= 0 || c.Inbound.JoinWait > 24*time.Hour, "inbound.join_wait", "expected more than 0s and at most 24h, got %q", c.Inbound.JoinWait)
	m.AddIf(c.Inbound.AnswerWait < 10*time.Millisecond || c.Inbound.AnswerWait > time.Minute, "inbound.answer_wait", "expected 10ms to 1m, got %q", c.Inbound.AnswerWait)
	m.AddIf(len(c.Delivery.Schedule) > 100, "delivery.schedule", "expected at most 100 pauses, got %d", len(c.Delivery.Schedule))
	m.AddIf(c.Delivery.Retention < time.Hour, "delivery.retention", "expected at least 1h, got %q", c.Delivery.Retention)
	if c.Delivery.DeadRetention != 0 && c.Delivery.DeadRetention < time.Hour {
		m.Add("delivery.dead_retention", "expected at least 1h, or 0s to keep them until they are replayed, got %q", c.Delivery.DeadRetention)
	}
	for i, pause := range c.Delivery.Schedule {
		m.AddIf(pause <= 0 || pause > maxPause, "delivery.schedule["+strconv.Itoa(i)+"]", "expected more than 0s and at most 720h, got %q", pause)
	}
	for i, key := range c.Ledger.MasterKeys() {
		if b, err := base64.StdEncoding.DecodeString(key); err != nil || len(b) != 32 {
			m.Add("ledger.master_key", "expected the base64 of 32 bytes, but key %d is not", i+1)
		}
	}
	m.AddIf(c.Ledger.MasterKey != "" && c.Ledger.MasterKeyFile != "", "ledger.master_key_file", "expected either this or ledger.master_key")
}

// hasValidHosts reports whether a URL has a valid scheme and host. A URL with a scheme of
// multiHostSchemes may have several hosts, separated by commas, which net/url refuses.
func hasValidHosts(raw string, singleHostSchemes, multiHostSchemes []string) bool {
	head, tail, _ := strings.Cut(raw, ",")
	if tail != "" {
		hosts, path, _ := strings.Cut(tail, "/")
		if strings.Contains(hosts, ",,") || strings.Trim(hosts, ",") != hosts || hosts == "" {
			return false
		}
		head += "/" + path
	}
	u, err := url.Parse(head)
	if err != nil || u.Hostname() == "" {
		return false
	}
	return tail == "" && slices.Contains(singleHostSchemes, u.Scheme) || slices.Contains(multiHostSchemes, u.Scheme)
}

func isWebURL(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// isHostPort reports whether s is host:port. If listen is true, the host may be empty and the port 0.
func isHostPort(s string, listen bool) bool {
	host, port, err := net.SplitHostPort(s)
	n, portErr := strconv.ParseUint(port, 10, 16)
	return err == nil && portErr == nil && (listen || host != "" && n > 0) && !strings.ContainsFunc(host, unicode.IsSpace)
}
