package inventory

import (
	"encoding/json"
	"time"

	"github.com/penstock/penstock/config/strict"
)

// Document is an inventory. Slices without entries are nil.
type Document struct {
	// Name identifies the document, which owns the records that it declares. Empty means
	// Default.
	Name        string       `json:"document,omitempty" check:"id"`
	SensorTypes []SensorType `json:"sensor_types,omitempty"`
	Networks    []Network    `json:"networks,omitempty"`
	Accounts    []Account    `json:"accounts,omitempty"`
}

// SensorType is a quantity that sensors measure: imperial value = metric value ×
// ImperialSlope + ImperialOffset.
type SensorType struct {
	ID             string  `json:"id" check:"id"`
	Name           string  `json:"name" check:"name"`
	MetricUnits    string  `json:"metric_units,omitempty"`
	ImperialUnits  string  `json:"imperial_units,omitempty"`
	ImperialSlope  float64 `json:"imperial_slope,omitempty"`
	ImperialOffset float64 `json:"imperial_offset,omitempty"`
}

// Network is a row of the simulated lookup's table.
type Network struct {
	Prefix  string `json:"prefix" check:"digits 1 15"` // digits, country code first
	MCC     string `json:"mcc" check:"digits 3 3"`
	MNC     string `json:"mnc" check:"digits 2 3"` // 2 or 3 digits; "03" is not "3"
	Name    string `json:"name" check:"name"`
	Country string `json:"country,omitempty"`
}

// Account is a customer.
type Account struct {
	ID   int64  `json:"id,omitempty"` // 0 until it is assigned
	Name string `json:"name" check:"name"`
	// Credit is the initial balance of a new account; nil means 0.
	Credit      *int64   `json:"credit,omitempty" check:"least 0"`
	Permissions []string `json:"permissions,omitempty" check:"each one mvno"`
	Tokens      []Token  `json:"tokens,omitempty"`
	SOAP        *SOAP    `json:"soap,omitempty"`
	// WebhookSecrets sign the requests of the gateway, the newest first.
	WebhookSecrets []string   `json:"webhook_secret,omitempty" strict:"one" check:"each secret"`
	CallbackURL    string     `json:"callback_url,omitempty"`
	Relays         Relays     `json:"relays,omitzero"`
	Locations      []Location `json:"locations,omitempty"`
	Decoders       []Decoder  `json:"decoders,omitempty"`
	Rules          []Rule     `json:"rules,omitempty"`
	SIMs           []SIM      `json:"sims,omitempty"`
	SIP            SIP        `json:"sip,omitzero"`
	Ledgers        []Ledger   `json:"ledgers,omitempty"`
}

// Token is a credential of an account, as plain text or sealed ("sha256:" and 64 hex digits).
type Token struct {
	Token  string   `json:"token" check:"token"`
	Scopes []string `json:"scopes,omitempty" check:"each one messaging cellular iot ledger webhook carrier"` // empty means messaging, cellular, iot and ledger
	Secret string   `json:"secret,omitempty"`                                                                // verifies signatures
	Source string   `json:"source,omitempty" check:"id"`                                                     // names the token in a path
}

// SOAP is the login of an account at the SOAP interface. The password is plain text, sealed
// like a token, or a slow hash ($argon2id$…).
type SOAP struct {
	Username string `json:"username" check:"name"`
	Password string `json:"password"`
}

// Relays route inbound SMS.
type Relays struct {
	Geo []GeoRelay    `json:"geo,omitempty"`
	VMN []NumberRelay `json:"vmn,omitempty"`
}

// GeoRelay routes the numbers that begin with a prefix.
type GeoRelay struct {
	ID         string   `json:"id" check:"id"`
	Prefix     string   `json:"prefix" check:"digits 1 15"` // digits
	Action     string   `json:"action" check:"one geo-action"`
	Parameters []string `json:"parameters,omitempty"`
	Filter     string   `json:"filter,omitempty"` // a condition that messages must meet
	ICCID      string   `json:"iccid,omitempty"`  // the SIM that mvno serves
	Pace       Pace     `json:"pace,omitzero"`
}

// NumberRelay routes one virtual number.
type NumberRelay struct {
	ID         string   `json:"id" check:"id"`
	Number     string   `json:"number" check:"digits 3 15"` // digits
	Action     string   `json:"action" check:"one vmn-action"`
	Parameters []string `json:"parameters,omitempty"`
	Filter     string   `json:"filter,omitempty"`
	Pace       Pace     `json:"pace,omitzero"`
}

// Pace limits the requests to each endpoint of a relay; the zero value sets no limit.
type Pace struct {
	Concurrency int     `json:"concurrency,omitempty"` // concurrent requests of each gateway
	PerSecond   float64 `json:"per_second,omitempty"`  // requests begun by each gateway
	Ordered     bool    `json:"ordered,omitempty"`     // a request waits for the preceding one
}

// Location is a place that devices belong to.
type Location struct {
	ID       string `json:"id" check:"id"`
	Name     string `json:"name" check:"name"`
	Imported bool   `json:"imported,omitempty"` // is the location of devices that their first frame creates
}

// Decoder decodes the frames of a kind of device to values.
type Decoder struct {
	ID            string    `json:"id" check:"id"`
	Name          string    `json:"name" check:"name"`
	Description   string    `json:"description,omitempty"`
	Type          string    `json:"type" check:"one bluetooth lorawan serial other"`
	Codec         string    `json:"codec,omitempty" check:"one json cayenne_lpp senml expr javascript"` // Parse fills in json
	Source        string    `json:"source,omitempty"`
	MACVersion    string    `json:"loraWanMacVersion,omitempty"`
	Revision      string    `json:"loraWanRevision,omitempty"`
	ClassB        bool      `json:"loraSupportClassB,omitempty"`
	ClassC        bool      `json:"loraSupportClassC,omitempty"`
	UseRawPayload bool      `json:"useRawPayload,omitempty"`
	Sensors       []Mapping `json:"sensors,omitempty"`
}

// Mapping maps a key of a decoder's values to a sensor type.
type Mapping struct {
	SensorTypeID string `json:"sensor_type_id"`
	Key          string `json:"key" check:"name"`
}

// Rule raises alarms for the frames of devices, or forwards the frames.
type Rule struct {
	ID        string       `json:"id" check:"id"`
	Name      string       `json:"name" check:"name"`
	Enabled   *bool        `json:"enabled,omitempty"` // Parse fills in true
	On        string       `json:"on" check:"one reading silent event"`
	Devices   RuleDevices  `json:"devices,omitzero"`
	When      string       `json:"when,omitempty"`
	Clear     string       `json:"clear,omitempty"`
	For       Duration     `json:"for,omitempty"`
	SilentFor Duration     `json:"silent_for,omitempty"`
	Repeat    string       `json:"repeat,omitempty" check:"repeat"` // never, always or a duration; Parse fills in never
	Batch     RuleBatch    `json:"batch,omitzero"`
	Ordered   bool         `json:"ordered,omitempty"`
	Actions   []RuleAction `json:"actions"`
}

// RuleDevices selects the devices of a rule; the zero value selects all devices.
type RuleDevices struct {
	DecoderID  string   `json:"decoder_id,omitempty"`
	LocationID string   `json:"location_id,omitempty"`
	IDs        []string `json:"ids,omitempty"`
	Name       string   `json:"name,omitempty"` // a pattern with *
}

// RuleBatch joins several frames into one request; the zero value sends each frame alone.
type RuleBatch struct {
	Count int      `json:"count,omitempty"`
	Every Duration `json:"every,omitempty"`
}

// RuleAction is an action of a rule that fires.
type RuleAction struct {
	Action     string   `json:"action" check:"one email http_get http_post sms"`
	Parameters []string `json:"parameters,omitempty"`
	Body       string   `json:"body,omitempty"` // an expression
	Originator string   `json:"originator,omitempty"`
}

// SIM is a SIM card with its codes.
type SIM struct {
	ICCID        string `json:"iccid" check:"digits 18 22"`
	IMSI         string `json:"imsi,omitempty" check:"digits 6 15"`
	MSISDN       string `json:"msisdn,omitempty" check:"digits 7 15"`
	PIN          string `json:"pin,omitempty" check:"code"`
	PIN2         string `json:"pin2,omitempty" check:"code"`
	PUK          string `json:"puk,omitempty" check:"code"`
	PUK2         string `json:"puk2,omitempty" check:"code"`
	CurrentState string `json:"current_state,omitempty" check:"one pending active suspended terminated"` // Parse fills in pending
	Service4G    bool   `json:"service_4g,omitempty"`
	Service5G    bool   `json:"service_5g,omitempty"`
}

// SIP lists an account's trunks.
type SIP struct {
	Trunks []Trunk `json:"trunks,omitempty"`
}

// Trunk is a source of SIP calls.
type Trunk struct {
	SourceIPs []string `json:"source_ips" check:"each ip"`
}

// Ledger stores tokens about assets.
type Ledger struct {
	ID                 string   `json:"id" check:"id"`
	Name               string   `json:"name" check:"name"`
	Description        string   `json:"description,omitempty"`
	Claims             int64    `json:"claims,omitempty" check:"least 0 (no limit)"` // per token; 0 means no limit
	Expiry             Duration `json:"expiry,omitempty"`                            // of a token; 0 means never
	PrivateKeyRequired bool     `json:"private_key_required,omitempty"`
	Metadata           bool     `json:"metadata,omitempty"`
	Certificates       bool     `json:"certificates,omitempty"`
}

// Duration is a duration that documents write as 8760h.
type Duration time.Duration

// MarshalText writes the duration in Go's format.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// EncodeYAML writes the document as YAML after a comment of one line.
func EncodeYAML(d Document, comment string) ([]byte, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	body, err := strict.YAML(text)
	return append([]byte("# "+comment+"\n"), body...), err
}
