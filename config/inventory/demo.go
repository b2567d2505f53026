package inventory

import (
	"fmt"
	"time"
)

// demoSink is the endpoint of the demo's relays and rules.
const demoSink = "http://127.0.0.1:9099"

// Demo returns the inventory of a daemon with nothing configured: one account
// that can be played with, and its only token.
func Demo(token string) Document {
	credit := int64(1000)
	return Document{
		SensorTypes: demoSensorTypes(),
		Networks: []Network{
			{Prefix: "447", MCC: "234", MNC: "15", Name: "Example Mobile", Country: "United Kingdom"},
			{Prefix: "49", MCC: "262", MNC: "02", Name: "Beispiel Mobil", Country: "Germany"},
		},
		Accounts: []Account{{
			Name: "demo", Credit: &credit, SOAP: &SOAP{Username: "demo", Password: token},
			Tokens:    []Token{{Token: token, Scopes: []string{"messaging", "cellular", "iot", "ledger", "webhook", "carrier"}}},
			Locations: []Location{{ID: "loc-imported", Name: "Imported", Imported: true}, {ID: "loc-default", Name: "Default"}},
			Decoders:  demoDecoders(),
			Rules:     demoRules(),
			Relays:    demoRelays(),
			SIMs:      demoSIMs(),
			SIP:       SIP{Trunks: []Trunk{{SourceIPs: []string{"192.0.2.1", "192.0.2.2"}}}},
			Ledgers: []Ledger{
				{ID: "demo-assets", Name: "Assets", Description: "things and where they are", Claims: 3, Expiry: Duration(8760 * time.Hour), Metadata: true, Certificates: true},
				{ID: "demo-locked", Name: "Locked", Description: "tokens that need their private token", Claims: 1, PrivateKeyRequired: true},
			},
		}},
	}
}

// demoSIMs are SIMs in every state that leads on.
func demoSIMs() []SIM {
	states := []string{"pending", "pending", "pending", "active", "active", "suspended"}
	sims := make([]SIM, len(states))
	for i, state := range states {
		n := fmt.Sprintf("%04d", i+1)
		sims[i] = SIM{
			ICCID: "894450000000000" + n, IMSI: "23415000000" + n, MSISDN: "44770090" + n,
			PIN: "1234", PIN2: "5678", PUK: "12345678", PUK2: "87654321", CurrentState: state, Service4G: state != "pending",
		}
	}
	return sims
}

func demoSensorTypes() []SensorType {
	return []SensorType{
		{ID: "temperature", Name: "Temperature", MetricUnits: "°C", ImperialUnits: "°F", ImperialSlope: 1.8, ImperialOffset: 32},
		{ID: "humidity", Name: "Humidity", MetricUnits: "%", ImperialUnits: "%", ImperialSlope: 1},
		{ID: "pressure", Name: "Pressure", MetricUnits: "hPa", ImperialUnits: "inHg", ImperialSlope: 0.02953},
		{ID: "illuminance", Name: "Illuminance", MetricUnits: "lx", ImperialUnits: "fc", ImperialSlope: 0.092903},
		{ID: "battery", Name: "Battery", MetricUnits: "V", ImperialUnits: "V", ImperialSlope: 1},
		{ID: "occupancy", Name: "Occupancy"},
		{ID: "count", Name: "Count"},
	}
}

func demoDecoders() []Decoder {
	return []Decoder{
		{
			ID: "demo-cayenne", Name: "Cayenne LPP", Type: "lorawan", Codec: "cayenne_lpp", Sensors: []Mapping{
				{"temperature", "temperature_1"}, {"humidity", "relative_humidity_2"}, {"temperature", "temperature_3"},
				{"temperature", "temperature_5"}, {"pressure", "barometric_pressure_4"}, {"illuminance", "luminosity_6"},
			},
		},
		{
			ID: "demo-parking", Name: "Parking space", Type: "lorawan", Codec: "expr",
			Description: "the first byte's lowest bit says whether the space is taken, the second byte counts",
			Source:      demoParkingSource,
			Sensors:     []Mapping{{"occupancy", "occupied"}, {"count", "counter"}},
		},
		{
			ID: "demo-json", Name: "Decoded by the sender", Type: "other", Codec: "json", Sensors: []Mapping{
				{"temperature", "temperature"}, {"humidity", "humidity"}, {"pressure", "pressure"},
				{"battery", "battery"}, {"illuminance", "illuminance"},
			},
		},
	}
}

const demoParkingSource = `occupied = len(bytes) > 0 ? bytes[0] % 2 : nil
counter = len(bytes) > 1 ? bytes[1] : nil
`

// demoRules are a rule that raises an alarm with the frame of docs/examples, and one
// that forwards every frame. That is disabled: until the gateway may call the sink,
// each of its deliveries would be dead.
func demoRules() []Rule {
	enabled, disabled := true, false
	return []Rule{
		{
			ID: "demo-warm", Name: "The demo device is warm", Enabled: &enabled, On: "reading", Devices: RuleDevices{DecoderID: "demo-cayenne"},
			When: "values.temperature_1 > 25", Clear: "values.temperature_1 < 23", Repeat: "never",
			Actions: []RuleAction{{Action: "email", Parameters: []string{"ops@example.com"}}},
		},
		{
			ID: "demo-forward", Name: "Forward readings to the sink", Enabled: &disabled, On: "reading", Repeat: "never",
			Actions: []RuleAction{{Action: "http_post", Parameters: []string{demoSink + "/readings"}}},
		},
	}
}

func demoRelays() Relays {
	return Relays{
		Geo: []GeoRelay{{
			ID: "demo-geo", Prefix: "4478000", Action: "http_get",
			Parameters: []string{demoSink + "/sms?m=%m&o=%o&d=%d&t=%t&x=%x&u=%u&i=%i"},
		}},
		VMN: []NumberRelay{
			{ID: "demo-mail", Number: "447860000001", Action: "email", Parameters: []string{"ops@example.com"}},
			{ID: "demo-inactive", Number: "447860000002", Action: "inactive"},
		},
	}
}
