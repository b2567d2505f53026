package config

import (
	"cmp"
	"crypto/x509"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/penstock/penstock/config/strict"
)

// Carrier configures the connection to a carrier of SMS.
type Carrier struct {
	Type string `json:"type" strict:"scalar"` // simulator, smpp, kannel or http
	// Name identifies the carrier in events, metrics and the placeholder %netw.
	Name string `json:"name"`
	// Prefixes are the prefixes of the numbers to which the carrier sends; empty means all numbers.
	// A message goes to the carrier with the longest prefix of its number, and of several
	// such carriers to the first.
	Prefixes []string `json:"prefixes"`
	// Window is the maximum number of unanswered messages of each bind.
	Window int `json:"window"`
	// PerSecond is the maximum number of messages in a second over all binds; 0 means no
	// limit.
	PerSecond int `json:"per_second"`
	// Originators are the originators that the carrier accepts: text, alphanumeric or
	// numeric; empty means text.
	Originators string `json:"originators"`
	// The tag "of" lists the types of carriers that have a setting. Settings without this tag
	// belong to all types; types other than smpp ignore enquire_link and in_flight.
	Addr         string `json:"addr" of:"smpp"` // host:port of the SMSC
	SystemID     string `json:"system_id" of:"smpp"`
	Password     string `json:"password" of:"smpp kannel" secret:"yes"`
	SystemType   string `json:"system_type" of:"smpp"`
	Bind         string `json:"bind" of:"smpp"` // transceiver, receiver or transmitter
	AddressRange string `json:"address_range" of:"smpp"`
	TLS          string `json:"tls" of:"smpp"`      // tls or none
	CAFile       string `json:"ca_file" of:"smpp"`  // PEM; empty means the system's authorities
	Alphabet     string `json:"alphabet" of:"smpp"` // of data_coding 0: gsm7, gsm7-packed or latin1
	// EnquireLink is the interval of enquire_link requests.
	EnquireLink time.Duration `json:"enquire_link"`
	// InFlight is the largest number of received PDUs that are being written to the journal.
	InFlight int `json:"in_flight"`
	// AnswerTimeout is the time after which the outcome of an unanswered message is unknown.
	AnswerTimeout time.Duration `json:"answer_timeout"`
	// Binds are the connections to the SMSC. Empty fields of a bind have the carrier's values.
	// Without this list the carrier has one bind.
	Binds []Bind `json:"binds" of:"smpp" strict:"one"`
	// Gateways selects the gateways that open the binds: each, or one of them at a time.
	Gateways string `json:"gateways" of:"smpp"`
	URL      string `json:"url" of:"kannel http" secret:"url"` // of sendsms, or of the endpoint for JSON
	Username string `json:"username" of:"kannel"`
	SMSC     string `json:"smsc" of:"kannel"`             // Kannel's smsc-id; empty lets Kannel route
	Token    string `json:"token" of:"http" secret:"yes"` // sent as Authorization: Bearer
}

// Bind configures a connection to an SMSC.
type Bind struct {
	Addr     string `json:"addr" strict:"scalar"` // host:port of the SMSC
	SystemID string `json:"system_id"`
	Password string `json:"password" secret:"yes"`
	Type     string `json:"bind"` // transceiver, receiver or transmitter
	// Window is the maximum number of unanswered messages of the bind.
	Window int `json:"window"`
	// PerSecond is the maximum number of messages in a second over the bind; 0 means that only
	// the limit of the carrier applies.
	PerSecond int `json:"per_second"`
}

// Sends reports whether messages can go over the bind.
func (b *Bind) Sends() bool { return b.Type != Receiver }

// Types of carriers and binds, and values of Carrier.Gateways.
const (
	SMPP        = "smpp"
	Transceiver = "transceiver"
	Receiver    = "receiver"
	Transmitter = "transmitter"
	Kannel      = "kannel"
	EachGateway = "each"
	OneGateway  = "one"
)

// Preset sets the defaults of settings for which 0 is invalid.
func (c *Carrier) Preset() {
	c.Window, c.InFlight, c.EnquireLink, c.AnswerTimeout = 10, 1000, 30*time.Second, 30*time.Second
}

func (c *Carrier) derive() {
	if c.Type == Simulator {
		c.Name = cmp.Or(c.Name, Simulator)
		c.AnswerTimeout = 0 // a simulator has none
	}
	if c.Type == Simulator && c.Window > 0 {
		c.Window = max(c.Window, 1000)
	}
	if c.Type != SMPP {
		c.InFlight, c.EnquireLink = 0, 0
		return
	}
	c.Gateways = cmp.Or(c.Gateways, EachGateway)
	c.Bind, c.TLS, c.Alphabet = cmp.Or(c.Bind, Transceiver), cmp.Or(c.TLS, NoTLS), cmp.Or(c.Alphabet, "gsm7")
}

// Connections returns the binds of an SMPP carrier, with the carrier's values for empty fields.
func (c *Carrier) Connections() []Bind {
	if len(c.Binds) == 0 {
		return []Bind{{Addr: c.Addr, SystemID: c.SystemID, Password: c.Password, Type: c.Bind, Window: c.Window}}
	}
	binds := slices.Clone(c.Binds)
	for i := range binds {
		b := &binds[i]
		b.Addr, b.Type, b.Window = cmp.Or(b.Addr, c.Addr), cmp.Or(b.Type, c.Bind), cmp.Or(b.Window, c.Window)
		b.SystemID, b.Password = cmp.Or(b.SystemID, c.SystemID), cmp.Or(b.Password, c.Password)
	}
	return binds
}

func (c *Config) validateCarriers(m *strict.Mistakes) {
	m.AddIf(len(c.Carriers) == 0, "carriers", "expected at least one, for example simulator")
	names := make(map[string]bool)
	for i := range c.Carriers {
		carrier, path := &c.Carriers[i], "carriers["+strconv.Itoa(i)+"]."
		carrier.validate(m, path)
		m.AddIf(names[carrier.Name], path+"name", "expected a name that no other carrier has, got %q", carrier.Name)
		names[carrier.Name] = true
	}
}

func (c *Carrier) validate(m *strict.Mistakes, path string) {
	if !slices.Contains([]string{Simulator, SMPP, Kannel, HTTP}, c.Type) {
		m.Add(path+"type", "expected simulator, smpp, kannel or http, got %q", c.Type)
		return
	}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() { // refuse the settings of other types
		tag := v.Type().Field(i).Tag
		types := strings.Fields(tag.Get("of"))
		foreign := len(types) > 0 && !slices.Contains(types, c.Type) && !v.Field(i).IsZero()
		m.AddIf(foreign, path+tag.Get("json"), "expected no value, because a carrier of the type %s does not have this setting", c.Type)
	}
	const nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	switch {
	case c.Type == Simulator:
		m.AddIf(c.Name != Simulator, path+"name", "expected simulator or no name, got %q", c.Name)
	case c.Name == "" || len(c.Name) > 40 || strings.Trim(c.Name, nameChars) != "":
		m.Add(path+"name", "expected a name of 1 to 40 letters, digits, dots, dashes and underscores, got %q", c.Name)
	case c.Name == Simulator:
		m.Add(path+"name", "expected another name than simulator, which is reserved")
	}
	switch c.Type {
	case SMPP:
		c.validateSMPP(m, path)
	case Kannel, HTTP:
		u, err := url.Parse(c.URL) // not quoted, because it may contain a secret
		m.AddIf(err != nil || !isWebURL(u) || c.Type == Kannel && u.RawQuery != "", path+"url", "expected an http or https URL")
		asciiField(m, path+"username", c.Username, maxPassword)
		asciiField(m, path+"password", c.Password, maxPassword)
		asciiField(m, path+"smsc", c.SMSC, maxPassword)
		asciiField(m, path+"token", c.Token, 4096)
	}
	if c.Type != Simulator {
		m.AddIf(c.AnswerTimeout < 100*time.Millisecond || c.AnswerTimeout > 5*time.Minute, path+"answer_timeout", "expected 100ms to 5m, got %q", c.AnswerTimeout)
	}
	for _, p := range c.Prefixes {
		m.AddIf(p == "" || len(p) > 15 || strings.Trim(p, "0123456789") != "", path+"prefixes", "expected prefixes of 1 to 15 digits, got %q", p)
	}
	if c.Originators != "" {
		oneOf(m, path+"originators", c.Originators, anyText, alphanumeric, numeric)
	}
	m.AddIf(c.Window < 1 || c.Window > maxWindow, path+"window", "expected 1 to %d, got %d", maxWindow, c.Window)
	m.AddIf(c.PerSecond < 0 || c.PerSecond > maxPerSecond, path+"per_second", "expected 0 to %d, got %d", maxPerSecond, c.PerSecond)
}

func (c *Carrier) validateSMPP(m *strict.Mistakes, prefix string) {
	for i, b := range c.Connections() {
		path := prefix
		if len(c.Binds) > 0 {
			path += "binds[" + strconv.Itoa(i) + "]."
			window := c.Binds[i].Window // 0 means the carrier's
			m.AddIf(window < 0 || window > maxWindow, path+"window", "expected 1 to %d, got %d", maxWindow, window)
		}
		m.AddIf(!isHostPort(b.Addr, false), path+"addr", "expected host:port, got %q", b.Addr)
		asciiField(m, path+"system_id", b.SystemID, 15)
		asciiField(m, path+"password", b.Password, maxPassword)
		oneOf(m, path+"bind", b.Type, Transceiver, Receiver, Transmitter)
		m.AddIf(b.PerSecond < 0 || b.PerSecond > maxPerSecond, path+"per_second", "expected 0 to %d, got %d", maxPerSecond, b.PerSecond)
	}
	asciiField(m, prefix+"system_type", c.SystemType, 12)
	asciiField(m, prefix+"address_range", c.AddressRange, 40)
	oneOf(m, prefix+"tls", c.TLS, DirectTLS, NoTLS)
	oneOf(m, prefix+"gateways", c.Gateways, EachGateway, OneGateway)
	oneOf(m, prefix+"alphabet", c.Alphabet, "gsm7", "gsm7-packed", "latin1")
	m.AddIf(c.EnquireLink < time.Second || c.EnquireLink > time.Hour, prefix+"enquire_link", "expected 1s to 1h, got %q", c.EnquireLink)
	m.AddIf(c.InFlight < 1 || c.InFlight > 100_000, prefix+"in_flight", "expected 1 to 100000, got %d", c.InFlight)
	if c.CAFile == "" {
		return
	}
	pem, err := os.ReadFile(c.CAFile)
	switch {
	case c.TLS == NoTLS:
		m.Add(prefix+"tls", "expected tls, because a ca_file is set")
	case err != nil:
		m.Add(prefix+"ca_file", "expected a file that can be read, got %q", c.CAFile)
	case !x509.NewCertPool().AppendCertsFromPEM(pem):
		m.Add(prefix+"ca_file", "expected a file with certificates in PEM, got %q", c.CAFile)
	}
}

const (
	maxPassword  = 64      // characters; SMPP 3.4 has 8, but many SMSCs take more
	maxWindow    = 10_000  // of a bind or carrier
	maxPerSecond = 100_000 // of a bind or carrier
)

// asciiField checks that a value is at most limit characters of printable ASCII without
// spaces. It does not quote the value, which may be a secret.
func asciiField(m *strict.Mistakes, key, value string, limit int) {
	invalid := strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' })
	m.AddIf(invalid || len(value) > limit, key, "expected at most %d characters of ASCII without blanks", limit)
}

func oneOf(m *strict.Mistakes, key, value string, words ...string) {
	lastIndex := len(words) - 1
	m.AddIf(!slices.Contains(words, value), key, "expected %s or %s, got %q", strings.Join(words[:lastIndex], ", "), words[lastIndex], value)
}

// Sends reports whether messages can go over the carrier.
func (c *Carrier) Sends() bool {
	return c.Type != SMPP || slices.ContainsFunc(c.Connections(), func(b Bind) bool { return b.Sends() })
}

// The values of Carrier.Originators.
const (
	anyText      = "text"         // all characters of the GSM alphabet
	alphanumeric = "alphanumeric" // letters and digits
	numeric      = "numeric"
)

// AcceptsOriginator reports whether the setting originators allows an originator.
func (c *Carrier) AcceptsOriginator(originator string) bool {
	isSpecial := func(r rune) bool { return !unicode.IsLetter(r) && (r < '0' || r > '9') }
	switch c.Originators {
	case numeric:
		return strings.Trim(originator, "0123456789") == ""
	case alphanumeric:
		return !strings.ContainsFunc(originator, isSpecial)
	}
	return true
}
