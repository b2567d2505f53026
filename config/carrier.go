package config

import (
	"crypto/x509"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/config/strict"
)

// Carrier is one party that messages come from and go to.
type Carrier struct {
	Type string `json:"type" strict:"scalar"` // simulator, smpp, kannel or http
	// Name is the name in events, metrics and %netw.
	Name string `json:"name"`
	// Prefixes are of the numbers that the carrier is for; none: all. The longest
	// prefix of a number counts, and of equal ones the first carrier's.
	Prefixes []string `json:"prefixes"`
	// Window is how many messages may be under way at once.
	Window int `json:"window"`
	// PerSecond is how many may leave in a second; 0: as many as the carrier takes.
	PerSecond int `json:"per_second"`
	// Originators are those that the carrier passes on: text, alphanumeric or
	// numeric; empty: text.
	Originators string `json:"originators"`
	// The settings of SMPP.
	Addr         string `json:"addr"` // host:port of the SMSC
	SystemID     string `json:"system_id"`
	Password     string `json:"password"`
	SystemType   string `json:"system_type"`
	Bind         string `json:"bind"` // transceiver or receiver
	AddressRange string `json:"address_range"`
	TLS          string `json:"tls"`      // tls or none
	CAFile       string `json:"ca_file"`  // PEM; empty: the system's authorities
	Alphabet     string `json:"alphabet"` // of data_coding 0: gsm7, gsm7-packed or latin1
	// EnquireLink is how often the link is tried.
	EnquireLink time.Duration `json:"enquire_link"`
	// InFlight is how many messages may be on their way to the journal.
	InFlight int `json:"in_flight"`
	// AnswerTimeout is how long the answer to a message may take before its
	// outcome is unknown.
	AnswerTimeout time.Duration `json:"answer_timeout"`
	// The settings of Kannel and HTTP.
	URL      string `json:"url"` // of sendsms, or what takes JSON
	Username string `json:"username"`
	SMSC     string `json:"smsc"`  // Kannel's smsc-id; empty: Kannel routes
	Token    string `json:"token"` // sent as Authorization: Bearer
}

// The types of carrier beside Simulator, and the values of Carrier's settings.
const (
	SMPP        = "smpp"
	Transceiver = "transceiver"
	Receiver    = "receiver"
	Transmitter = "transmitter"
	Kannel      = "kannel"
)

// alphabets are the values of Carrier.Alphabet.
func alphabets() []string { return []string{"gsm7", "gsm7-packed", "latin1"} }

// Preset sets what a document may leave out and no zero stands for.
func (c *Carrier) Preset() {
	c.Window, c.InFlight, c.EnquireLink, c.AnswerTimeout = 10, 1000, 30*time.Second, 30*time.Second
}

// derive fills in defaults.
func (c *Carrier) derive() {
	c.deriveWay()
	if c.Type == Simulator && c.Name == "" {
		c.Name = Simulator
	}
	if c.Type == Simulator {
		c.AnswerTimeout = 0 // what a carrier has no use for
	}
	if c.Type != SMPP {
		c.InFlight, c.EnquireLink = 0, 0
		return
	}
	for value, preset := range map[*string]string{&c.Bind: Transceiver, &c.TLS: NoTLS, &c.Alphabet: "gsm7"} {
		if *value == "" {
			*value = preset
		}
	}
}

func (c *Config) validateCarriers(m *strict.Mistakes) {
	if len(c.Carriers) == 0 {
		m.Add("carriers", "expected at least one, for example simulator")
	}
	names := make(map[string]bool)
	for i := range c.Carriers {
		carrier, at := &c.Carriers[i], "carriers["+strconv.Itoa(i)+"]."
		carrier.validate(m, at)
		if names[carrier.Name] {
			m.Add(at+"name", "expected another name than that of a carrier before, got %q", carrier.Name)
		}
		names[carrier.Name] = true
	}
}

// validate checks a carrier by its type.
func (c *Carrier) validate(m *strict.Mistakes, at string) {
	check := map[string]func(*strict.Mistakes, string){
		Simulator: c.validateSimulator, SMPP: c.validateSMPP, Kannel: c.validateKannel, HTTP: c.validateHTTP,
	}[c.Type]
	if check == nil {
		m.Add(at+"type", "expected simulator, smpp, kannel or http, got %q", c.Type)
		return
	}
	check(m, at)
	c.validateWay(m, at)
}

func (c *Carrier) validateSMPP(m *strict.Mistakes, at string) {
	c.foreign(m, at, "smpp", map[string]string{"url": c.URL, "username": c.Username, "smsc": c.SMSC, "token": c.Token})
	c.validateName(m, at)
	if !hostPort(c.Addr, false) {
		m.Add(at+"addr", "expected host:port, got %q", c.Addr)
	}
	asciiField(m, at+"system_id", c.SystemID, 15)
	asciiField(m, at+"password", c.Password, maxPassword)
	asciiField(m, at+"system_type", c.SystemType, 12)
	asciiField(m, at+"address_range", c.AddressRange, 40)
	oneOf(m, at+"bind", c.Bind, Transceiver, Receiver, Transmitter)
	oneOf(m, at+"tls", c.TLS, DirectTLS, NoTLS)
	oneOf(m, at+"alphabet", c.Alphabet, alphabets()...)
	c.validateLimits(m, at)
}

func (c *Carrier) validateLimits(m *strict.Mistakes, at string) {
	if c.EnquireLink < time.Second || c.EnquireLink > time.Hour {
		m.Add(at+"enquire_link", "expected 1s to 1h, got %q", c.EnquireLink)
	}
	if c.InFlight < 1 || c.InFlight > 100_000 {
		m.Add(at+"in_flight", "expected 1 to 100000, got %d", c.InFlight)
	}
	validateTimeout(m, at, c.AnswerTimeout)
	if c.CAFile == "" {
		return
	}
	pem, err := os.ReadFile(c.CAFile)
	switch {
	case c.TLS == NoTLS:
		m.Add(at+"tls", "expected tls, because a ca_file is set")
	case err != nil:
		m.Add(at+"ca_file", "expected a file that can be read, got %q", c.CAFile)
	case !x509.NewCertPool().AppendCertsFromPEM(pem):
		m.Add(at+"ca_file", "expected a file with certificates in PEM, got %q", c.CAFile)
	}
}

// maxPassword is longer than the 8 characters of SMPP 3.4: many SMSCs take more.
const maxPassword = 64

// asciiField checks what goes into a C-octet string. The value may be secret and
// is not repeated.
func asciiField(m *strict.Mistakes, key, value string, limit int) {
	odd := strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' })
	if odd || len(value) > limit {
		m.Add(key, "expected at most %d characters of ASCII without blanks", limit)
	}
}

func oneOf(m *strict.Mistakes, key, value string, words ...string) {
	if !slices.Contains(words, value) {
		m.Add(key, "expected %s, got %q", strings.Join(words, " or "), value)
	}
}
