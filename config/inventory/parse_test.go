package inventory_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/config/strict"
	"github.com/penstock/penstock/relay/relaytest"
)

// contract returns the document in testdata/contract.yaml.
func contract(t testing.TB) inventory.Document {
	t.Helper()
	text := relaytest.Must(os.ReadFile("testdata/contract.yaml"))(t)
	return parse(t, string(text), inventory.Options{})
}

func parse(t testing.TB, text string, o inventory.Options) inventory.Document {
	t.Helper()
	return *relaytest.Must(inventory.Parse([]byte(text), o))(t)
}

// earlier returns an Options.Load that returns an earlier document.
func earlier(d inventory.Document) func(inventory.Document) (inventory.Set, error) {
	return func(inventory.Document) (inventory.Set, error) { return inventory.Set{Document: d}, nil }
}

func encode(t testing.TB, d inventory.Document) string {
	t.Helper()
	return string(relaytest.Must(json.Marshal(d))(t))
}

func TestParseReadsEverySection(t *testing.T) {
	credit := int64(1000)
	want := inventory.Document{
		SensorTypes: []inventory.SensorType{{ID: "temperature", Name: "Temperature", MetricUnits: "°C", ImperialUnits: "°F", ImperialSlope: 1.8, ImperialOffset: 32}},
		Networks:    []inventory.Network{{Prefix: "447", MCC: "234", MNC: "15", Name: "Example Mobile", Country: "United Kingdom"}},
		Accounts: []inventory.Account{{
			Name: "acme", Credit: &credit, Permissions: []string{"mvno"},
			Tokens:         []inventory.Token{{Token: "acme-token-0123456", Scopes: []string{"messaging", "cellular", "iot", "ledger", "webhook", "carrier"}, Secret: "shh", Source: "hq"}},
			SOAP:           &inventory.SOAP{Username: "acme", Password: "secret"},
			WebhookSecrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, CallbackURL: "https://example.com/callback",
			Relays: inventory.Relays{
				Geo: []inventory.GeoRelay{{ID: "g1", Prefix: "4478000", Action: "http_get", Parameters: []string{"https://example.com/in?m=%m&o=%o"}, ICCID: "8944000000000000001"}},
				VMN: []inventory.NumberRelay{{ID: "v1", Number: "447860000001", Action: "inactive"}},
			},
			Locations: []inventory.Location{{ID: "loc1", Name: "Default", Imported: true}},
			Decoders:  []inventory.Decoder{{ID: "d1", Name: "Field tester", Type: "lorawan", Codec: "cayenne_lpp", Sensors: []inventory.Mapping{{SensorTypeID: "temperature", Key: "temperature_1"}}}},
			Rules: []inventory.Rule{
				{
					ID: "r1", Name: "Fridge is warm", Enabled: new(true), On: "reading", Devices: inventory.RuleDevices{DecoderID: "d1", Name: "fridge-*"},
					When: "values.temperature_1 > 8", Clear: "values.temperature_1 < 6", For: inventory.Duration(10 * time.Minute), Repeat: "1h", Actions: []inventory.RuleAction{
						{Action: "sms", Parameters: []string{"447700900123"}, Originator: "Cellar"},
						{Action: "http_post", Parameters: []string{"https://example.com/alarms"}, Body: "{t: values.temperature_1}"},
					},
				},
				{
					ID: "r2", Name: "Archive", Enabled: new(false), On: "reading", Repeat: "never", Batch: inventory.RuleBatch{Count: 100, Every: inventory.Duration(time.Minute)}, Ordered: true,
					Actions: []inventory.RuleAction{{Action: "http_post", Parameters: []string{"https://example.com/readings"}}},
				},
				{
					ID: "r3", Name: "Silence", Enabled: new(true), On: "silent", SilentFor: inventory.Duration(2 * time.Hour), Repeat: "never",
					Actions: []inventory.RuleAction{{Action: "email", Parameters: []string{"ops@example.com"}}},
				},
			},
			SIMs:    []inventory.SIM{{ICCID: "8944000000000000001", IMSI: "234150000000001", MSISDN: "447700900001", PIN: "0000", PIN2: "1111", PUK: "12345678", PUK2: "87654321", CurrentState: "pending", Service5G: true}},
			SIP:     inventory.SIP{Trunks: []inventory.Trunk{{SourceIPs: []string{"192.0.2.1"}}}},
			Ledgers: []inventory.Ledger{{ID: "l1", Name: "Assets", Description: "…", Claims: 3, Expiry: inventory.Duration(8760 * time.Hour), Metadata: true, Certificates: true}},
		}},
	}
	got := contract(t)
	relaytest.Equal(t, "the document", got, want)
	relaytest.Equal(t, "the document after encoding", parse(t, encode(t, got), inventory.Options{}), got)
}

func TestParseReadsThePaceOfARelay(t *testing.T) {
	d := parse(t, "accounts: [{name: a, relays: {geo: [{id: g, prefix: 44, action: black_hole, pace: {concurrency: 4, per_second: 0.5, ordered: true}}], "+
		"vmn: [{id: v, number: 447, action: inactive, pace: {ordered: true}}]}}]", inventory.Options{})
	r := d.Accounts[0].Relays
	relaytest.Equal(t, "the pace of the geo relay", r.Geo[0].Pace, inventory.Pace{Concurrency: 4, PerSecond: 0.5, Ordered: true})
	relaytest.Equal(t, "the pace of the VMN relay", r.VMN[0].Pace, inventory.Pace{Ordered: true})
	relaytest.Equal(t, "the document after encoding", parse(t, encode(t, d), inventory.Options{}), d)
}

func TestDemoIsValid(t *testing.T) {
	text := relaytest.Must(os.ReadFile("demo.yaml"))(t)
	relaytest.Equal(t, "the mistakes of demo.yaml", strict.Decode(text, new(inventory.Document), strict.Options{}), nil)
	d := inventory.Demo("random-token-0123456")
	relaytest.Equal(t, "the document after encoding", parse(t, encode(t, d), inventory.Options{}), d)
}

// accountWith returns a document with one account, which has a name and these fields.
func accountWith(fields string) string { return "accounts: [{name: a, " + fields + "}]" }

func TestParseNamesEveryMistake(t *testing.T) {
	const seventyDigits = "0123456789012345678901234567890123456789012345678901234567890123456789"
	const geoActions = "accounts[0].relays.geo[0].action: expected black_hole, email, http_get, http_post or mvno, got "
	const vmnActions = "accounts[0].relays.vmn[0].action: expected desktopsms, dialogue_get, dialogue_post, email, http_get, http_post, inactive, inbound_gw or ms_outlook, got "
	for name, tc := range map[string]struct{ doc, want string }{
		"a blank document":                                {" \n", "expected an inventory, got nothing"},
		"an unknown section":                              {"acounts: []", `acounts: unknown field, did you mean "accounts"?`},
		"an unknown field":                                {accountWith("credt: 1"), `accounts[0].credt: unknown field, did you mean "credit"?`},
		"credit in words":                                 {accountWith("credit: many"), `accounts[0].credit: expected a whole number, got "many"`},
		"a negative slope":                                {"sensor_types: [{id: t, name: T, imperial_slope: -1.8}]", "sensor_types[0].imperial_slope: expected a number above 0, got -1.8"},
		"negative credit":                                 {accountWith("credit: -1"), "accounts[0].credit: expected 0 or more, got -1"},
		"an account without a name":                       {"accounts: [{credit: 1}]", "accounts[0].name: expected a name"},
		"a name of two lines":                             {"accounts: [{name: \"a\\nb\"}]", `accounts[0].name: expected one line of at most 200 bytes, got "a\nb"`},
		"two accounts with one name":                      {"accounts: [{name: a}, {name: a}]", "accounts[1].name: already taken by accounts[0].name"},
		"two accounts with one id":                        {"accounts: [{name: a, id: 7}, {name: b, id: 7}]", "accounts[1].id: already taken by accounts[0].id"},
		"a name that is a number":                         {"accounts: [{name: '42'}, {name: '43', id: 44}, {name: '45', id: 45}]", "accounts[0].name: expected a name that is not a number, which would be read as an account's id, got \"42\"\naccounts[1].name: expected a name that is not a number, which would be read as an account's id, got \"43\""},
		"a negative id":                                   {accountWith("id: -7"), "accounts[0].id: expected more than 0, got -7"},
		"an id in letters":                                {accountWith("id: seven"), `accounts[0].id: expected a whole number, got "seven"`},
		"an unknown permission":                           {accountWith("permissions: [root]"), `accounts[0].permissions[0]: expected mvno, got "root"`},
		"a token with a blank is not shown":               {accountWith("tokens: [{token: a b}]"), "accounts[0].tokens[0].token: expected a token without blanks"},
		"an empty token":                                  {accountWith("tokens: [{scopes: [iot]}]"), "accounts[0].tokens[0].token: expected a token without blanks"},
		"tokens as a string are not shown":                {accountWith("tokens: acme-token-0123456"), "accounts[0].tokens: expected a list, got a single value"},
		"a token that is too short":                       {accountWith("tokens: [{token: fifteen-letters}]"), "accounts[0].tokens[0].token: expected at least 16 characters, got 15"},
		"a repeated token":                                {accountWith("tokens: [{token: a-token-0123456789}, {token: a-token-0123456789}]"), "accounts[0].tokens[1].token: already taken by accounts[0].tokens[0].token"},
		"an unknown scope":                                {accountWith("tokens: [{token: a-token-0123456789, scopes: [sms]}]"), `accounts[0].tokens[0].scopes[0]: expected messaging, cellular, iot, ledger, webhook or carrier, got "sms"`},
		"a source with a slash":                           {accountWith("tokens: [{token: a-token-0123456789, source: a/b}]"), `accounts[0].tokens[0].source: expected 1 to 64 letters, digits, dots, hyphens or underscores, got "a/b"`},
		"two tokens with one source":                      {accountWith("tokens: [{token: a-token-0123456789, source: s}, {token: b-token-0123456789, source: s}]"), "accounts[0].tokens[1].source: already taken by accounts[0].tokens[0].source"},
		"SOAP without a password":                         {accountWith("soap: {username: u}"), "accounts[0].soap.password: expected a password"},
		"a SOAP password of blanks":                       {accountWith("soap: {username: u, password: '   '}"), "accounts[0].soap.password: expected a password"},
		"a secret of blanks":                              {accountWith("tokens: [{token: a-token-of-sixteen, secret: '   '}]"), "accounts[0].tokens[0].secret: expected a secret that is not only blanks"},
		"two accounts with one SOAP username":             {"accounts: [{name: a, soap: {username: u, password: p}}, {name: b, soap: {username: u, password: p}}]", "accounts[1].soap.username: already taken by accounts[0].soap.username"},
		"a webhook secret in another form":                {accountWith("webhook_secret: [hush]"), "accounts[0].webhook_secret[0]: expected whsec_ and the base64 of 24 to 64 bytes"},
		"a callback without TLS":                          {accountWith("callback_url: 'http://a'"), `accounts[0].callback_url: expected an https URL, got "http://a"`},
		"letters in a prefix":                             {accountWith("relays: {geo: [{id: g, prefix: abc, action: black_hole}]}"), `accounts[0].relays.geo[0].prefix: expected 1 to 15 digits, got "abc"`},
		"a geo relay without a prefix":                    {accountWith("relays: {geo: [{id: g, action: black_hole}]}"), `accounts[0].relays.geo[0].prefix: expected 1 to 15 digits, got ""`},
		"a geo relay with a number":                       {accountWith("relays: {geo: [{id: g, number: '44', prefix: '44', action: black_hole}]}"), "accounts[0].relays.geo[0].number: unknown field, expected one of action, filter, iccid, id, pace, parameters, prefix"},
		"a concurrency that is too high":                  {accountWith("relays: {vmn: [{id: v, number: 447, action: inactive, pace: {concurrency: 1001}}]}"), "accounts[0].relays.vmn[0].pace.concurrency: expected 1 to 1000, or 0 for no bound, got 1001"},
		"a negative rate":                                 {accountWith("relays: {geo: [{id: g, prefix: 44, action: black_hole, pace: {per_second: -1}}]}"), "accounts[0].relays.geo[0].pace.per_second: expected 1/3600 to 10000, or 0 for no bound, got -1"},
		"a rate that is not a number":                     {accountWith("relays: {geo: [{id: g, prefix: 44, action: black_hole, pace: {per_second: .nan}}]}"), `accounts[0].relays.geo[0].pace.per_second: expected a number, got ".nan"`},
		"a prefix claimed by two accounts":                {"accounts: [{name: a, relays: {geo: [{id: g, prefix: 44, action: black_hole}]}}, {name: b, relays: {geo: [{id: g, prefix: +44, action: black_hole}]}}]", "accounts[1].relays.geo[0].prefix: already taken by accounts[0].relays.geo[0].prefix"},
		"a number that is too long":                       {accountWith("relays: {vmn: [{id: v, number: 4412345678901234, action: inactive}]}"), `accounts[0].relays.vmn[0].number: expected 3 to 15 digits, got "4412345678901234"`},
		"a number claimed twice":                          {accountWith("relays: {vmn: [{id: v, number: 447, action: inactive}, {id: w, number: 447, action: inactive}]}"), "accounts[0].relays.vmn[1].number: already taken by accounts[0].relays.vmn[0].number"},
		"two relays with one id":                          {accountWith("relays: {geo: [{id: r, prefix: 44, action: black_hole}], vmn: [{id: r, number: 447, action: inactive}]}"), "accounts[0].relays.vmn[0].id: already taken by accounts[0].relays.geo[0].id"},
		"a relay without an id":                           {accountWith("relays: {vmn: [{number: 447, action: inactive}]}"), "accounts[0].relays.vmn[0].id: expected an id"},
		"an id with a brace":                              {accountWith("relays: {vmn: [{id: 'a{b', number: 447, action: inactive}]}"), `accounts[0].relays.vmn[0].id: expected 1 to 64 letters, digits, dots, hyphens or underscores, got "a{b"`},
		"an id that is too long":                          {accountWith("locations: [{name: l, id: x" + seventyDigits + "}]"), `accounts[0].locations[0].id: expected 1 to 64 letters, digits, dots, hyphens or underscores, got "x` + seventyDigits[:59] + `…"`},
		"an action of the other kind":                     {accountWith("relays: {geo: [{id: g, prefix: 44, action: inactive}]}"), geoActions + `"inactive"`},
		"an unknown action":                               {accountWith("relays: {vmn: [{id: v, number: 447, action: fax}]}"), vmnActions + `"fax"`},
		"an action without its parameters":                {accountWith("relays: {geo: [{id: g, prefix: 44, action: email}]}"), "accounts[0].relays.geo[0].parameters: expected at least one for the action email"},
		"an action with parameters that it does not take": {accountWith("relays: {vmn: [{id: v, number: 447, action: inactive, parameters: [a]}]}"), "accounts[0].relays.vmn[0].parameters: expected none for the action inactive"},
		"an endpoint that is not a URL":                   {accountWith("relays: {geo: [{id: g, prefix: 44, action: http_get, parameters: [example.com]}]}"), `accounts[0].relays.geo[0].parameters[0]: expected an http or https URL, got "example.com"`},
		"an endpoint with another scheme":                 {accountWith("relays: {geo: [{id: g, prefix: 44, action: http_get, parameters: ['ftp://a/']}]}"), `accounts[0].relays.geo[0].parameters[0]: expected an http or https URL, got "ftp://a/"`},
		"a callback with a fragment":                      {"accounts: [{name: a, callback_url: 'https://h/#x'}]", `accounts[0].callback_url: expected an https URL, got "https://h/#x"`},
		"a placeholder in the host":                       {accountWith("relays: {vmn: [{id: v, number: 447, action: http_post, parameters: ['https://%orig/']}]}"), `accounts[0].relays.vmn[0].parameters[0]: expected no placeholder before the path, got "https://%orig/"`},
		"an endpoint that CheckEndpoint refuses":          {accountWith("relays: {vmn: [{id: v, number: 447, action: http_get, parameters: ['https://a/?x=vmn%bad']}]}"), "accounts[0].relays.vmn[0].parameters[0]: expected a URL that can be called: line 1: bad"},
		"a line break in an endpoint":                     {accountWith("relays: {vmn: [{id: v, number: 447, action: inbound_gw, parameters: [\"https://a/\\nb\"]}]}"), `accounts[0].relays.vmn[0].parameters[0]: expected an http or https URL, got "https://a/\nb"`},
		"a mailbox without a domain":                      {accountWith("relays: {geo: [{id: g, prefix: 44, action: email, parameters: [ops]}]}"), `accounts[0].relays.geo[0].parameters[0]: expected a mail address, got "ops"`},
		"a mailbox outside ASCII":                         {accountWith("relays: {geo: [{id: g, prefix: 44, action: email, parameters: [bär@example.com]}]}"), `accounts[0].relays.geo[0].parameters[0]: expected a mail address, got "bär@example.com"`},
		"mvno without a SIM":                              {accountWith("relays: {geo: [{id: g, prefix: 44, action: mvno}]}"), "accounts[0].relays.geo[0].iccid: expected the ICCID of the SIM that mvno serves"},
		"mvno with an unknown SIM":                        {accountWith("relays: {geo: [{id: g, prefix: 44, action: mvno, iccid: '8944'}]}"), `accounts[0].relays.geo[0].iccid: expected the ICCID of a SIM of this account, got "8944"`},
		"a location without a name":                       {accountWith("locations: [{id: l}]"), "accounts[0].locations[0].name: expected a name"},
		"two imported locations":                          {accountWith("locations: [{id: l, name: l, imported: true}, {id: m, name: m, imported: true}]"), "accounts[0].locations[1].imported: expected one imported location, the first is accounts[0].locations[0]"},
		"a boolean of YAML 1.1":                           {accountWith("locations: [{id: l, name: l, imported: yes}]"), `accounts[0].locations[0].imported: expected true or false, got "yes"`},
		"a decoder without a type":                        {accountWith("decoders: [{id: d, name: d}]"), `accounts[0].decoders[0].type: expected bluetooth, lorawan, serial or other, got ""`},
		"an unknown codec":                                {accountWith("decoders: [{id: d, name: d, type: other, codec: lua}]"), `accounts[0].decoders[0].codec: expected json, cayenne_lpp, senml, expr or javascript, got "lua"`},
		"a codec without its source":                      {accountWith("decoders: [{id: d, name: d, type: other, codec: expr}]"), "accounts[0].decoders[0].source: expected a source for the codec expr"},
		"a source for a codec without one":                {accountWith("decoders: [{id: d, name: d, type: other, source: x}]"), "accounts[0].decoders[0].source: expected none for the codec json"},
		"a VMN relay's filter that does not compile":      {accountWith("relays: {vmn: [{id: r, number: \"4478\", action: inactive, filter: bad}]}"), "accounts[0].relays.vmn[0].filter: expected a condition that compiles: line 1: bad"},
		"a geo relay's filter that does not compile":      {accountWith("relays: {geo: [{id: r, prefix: \"4478\", action: black_hole, filter: bad}]}"), "accounts[0].relays.geo[0].filter: expected a condition that compiles: line 1: bad"},
		"a source that does not compile":                  {accountWith("decoders: [{id: d, name: d, type: other, codec: javascript, source: bad}]"), "accounts[0].decoders[0].source: expected a source that compiles: line 1: bad"},
		"an unknown sensor type":                          {"sensor_types: [{id: humidity, name: h}]\n" + accountWith("decoders: [{id: d, name: d, type: other, sensors: [{sensor_type_id: humidty, key: k}]}]"), `accounts[0].decoders[0].sensors[0].sensor_type_id: expected the id of a sensor type declared in an inventory (did you mean "humidity"?), got "humidty"`},
		"a repeated key":                                  {"sensor_types: [{id: t, name: t}]\n" + accountWith("decoders: [{id: d, name: d, type: other, sensors: [{sensor_type_id: t, key: k}, {sensor_type_id: t, key: k}]}]"), "accounts[0].decoders[0].sensors[1].key: already taken by accounts[0].decoders[0].sensors[0].key"},
		"a rule without a name":                           {accountWith("rules: [{id: r, on: reading}]"), "accounts[0].rules[0].name: expected a name"},
		"a rule without a trigger":                        {accountWith("rules: [{id: r, name: n}]"), `accounts[0].rules[0].on: expected reading, silent or event, got ""`},
		"a trigger that YAML 1.1 reads as a boolean":      {accountWith("rules: [{id: r, name: n, on: on}]"), `accounts[0].rules[0].on: expected reading, silent or event, got "on"`},
		"two rules with one id":                           {accountWith("rules: [{id: r, name: n, on: reading}, {id: r, name: m, on: event}]"), "accounts[0].rules[1].id: already taken by accounts[0].rules[0].id"},
		"a misspelt condition":                            {accountWith("rules: [{id: r, name: n, on: reading, wen: x}]"), `accounts[0].rules[0].wen: unknown field, did you mean "when"?`},
		"a rule with an unknown decoder":                  {accountWith("decoders: [{id: probe, name: P, type: other}], rules: [{id: r, name: n, on: reading, devices: {decoder_id: prob}}]"), `accounts[0].rules[0].devices.decoder_id: expected the id of a decoder of this account (did you mean "probe"?), got "prob"`},
		"a rule with another account's decoder":           {"accounts: [{name: b, decoders: [{id: probe, name: P, type: other}]}, {name: a, rules: [{id: r, name: n, on: reading, devices: {decoder_id: probe}}]}]", `accounts[1].rules[0].devices.decoder_id: expected the id of a decoder of this account, got "probe"`},
		"a rule with an unknown location":                 {accountWith("rules: [{id: r, name: n, on: reading, devices: {location_id: cellar}}]"), `accounts[0].rules[0].devices.location_id: expected the id of a location of this account, got "cellar"`},
		"a rule's duration in days":                       {accountWith("rules: [{id: r, name: n, on: silent, silent_for: 2d}]"), `accounts[0].rules[0].silent_for: expected a duration such as 90s or 2h30m, got "2d"`},
		"a negative duration of a rule":                   {accountWith("rules: [{id: r, name: n, on: reading, for: -1m}]"), "accounts[0].rules[0].for: expected a duration such as 10m, got -1m0s"},
		"a repeat in words":                               {accountWith("rules: [{id: r, name: n, on: reading, repeat: often}]"), `accounts[0].rules[0].repeat: expected never, always or a duration such as 10m, got "often"`},
		"a negative batch count":                          {accountWith("rules: [{id: r, name: n, on: reading, batch: {count: -1}}]"), "accounts[0].rules[0].batch.count: expected 1 or more, got -1"},
		"an unknown action of a rule":                     {accountWith("rules: [{id: r, name: n, on: reading, actions: [{action: fax}]}]"), `accounts[0].rules[0].actions[0].action: expected email, http_get, http_post or sms, got "fax"`},
		"a rule's private endpoint":                       {accountWith("rules: [{id: r, name: n, on: reading, actions: [{action: http_get, parameters: ['http://10.0.0.1/?t=%key:t']}]}]"), "accounts[0].rules[0].actions[0].parameters[0]: expected a URL that may be reached: http://10.0.0.1/ is private"},
		"a condition that does not compile":               {accountWith("rules: [{id: r, name: n, on: reading}, {id: s, name: n, on: reading, when: bad}]"), "accounts[0].rules[1].when: line 1, column 1: bad"},
		"a short ICCID":                                   {accountWith("sims: [{iccid: '8944'}]"), `accounts[0].sims[0].iccid: expected 18 to 22 digits, got "8944"`},
		"a repeated SIM":                                  {accountWith("sims: [{iccid: '8944000000000000001'}, {iccid: '8944000000000000001'}]"), "accounts[0].sims[1].iccid: already taken by accounts[0].sims[0].iccid"},
		"an IMSI with a letter":                           {accountWith("sims: [{iccid: '8944000000000000001', imsi: 23415x}]"), `accounts[0].sims[0].imsi: expected 6 to 15 digits, got "23415x"`},
		"a short MSISDN":                                  {accountWith("sims: [{iccid: '8944000000000000001', msisdn: '447'}]"), `accounts[0].sims[0].msisdn: expected 7 to 15 digits, got "447"`},
		"a PIN of letters is not shown":                   {accountWith("sims: [{iccid: '8944000000000000001', pin: abcd}]"), "accounts[0].sims[0].pin: expected 4 to 8 digits"},
		"an unknown state":                                {accountWith("sims: [{iccid: '8944000000000000001', current_state: asleep}]"), `accounts[0].sims[0].current_state: expected pending, active, suspended or terminated, got "asleep"`},
		"a trunk without an address":                      {accountWith("sip: {trunks: [{}]}"), "accounts[0].sip.trunks[0].source_ips: expected at least one address"},
		"a host name instead of an address":               {accountWith("sip: {trunks: [{source_ips: [pbx]}]}"), `accounts[0].sip.trunks[0].source_ips[0]: expected an IP address, got "pbx"`},
		"an expiry without a unit":                        {accountWith("ledgers: [{id: l, name: l, expiry: 7}]"), `accounts[0].ledgers[0].expiry: expected a duration such as 90s or 2h30m, got "7"`},
		"negative claims":                                 {accountWith("ledgers: [{id: l, name: l, claims: -1}]"), "accounts[0].ledgers[0].claims: expected 0 (no limit) or more, got -1"},
		"a negative expiry":                               {accountWith("ledgers: [{id: l, name: l, expiry: -1h}]"), "accounts[0].ledgers[0].expiry: expected 0s (never) or more"},
		"a country code with letters":                     {"networks: [{prefix: 44, mcc: GBR, mnc: '15', name: n}]", `networks[0].mcc: expected 3 digits, got "GBR"`},
		"a repeated network":                              {"networks: [{prefix: 44, mcc: 234, mnc: 15, name: n}, {prefix: 44, mcc: 234, mnc: 15, name: n}]", "networks[1].prefix: already taken by networks[0].prefix"},
		"a repeated sensor type":                          {"sensor_types: [{id: t, name: t}, {id: t, name: t}]", "sensor_types[1].id: already taken by sensor_types[0].id"},
		"a slope in words":                                {"sensor_types: [{id: t, name: t, imperial_slope: steep}]", `sensor_types[0].imperial_slope: expected a number, got "steep"`},
		"a mask without a stored secret":                  {accountWith("tokens: [{token: 'masked:0123456789ab'}]"), "accounts[0].tokens[0].token: expected a secret, or the mask of the stored one"},
		"several mistakes in the order of the document":   {accountWith("credit: x, tokens: [{token: ''}], sims: [{iccid: 1}]"), "accounts[0].credit: expected a whole number, got \"x\"\naccounts[0].tokens[0].token: expected a token without blanks\naccounts[0].sims[0].iccid: expected 18 to 22 digits, got \"1\""},
		"an endpoint that may not be reached": {
			accountWith("relays: {geo: [{id: g, prefix: 44, action: http_get, parameters: ['http://10.0.0.1:80/%m']}]}"),
			"accounts[0].relays.geo[0].parameters[0]: expected a URL that may be reached: http://10.0.0.1:80/ is private",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := inventory.Parse([]byte(tc.doc), inventory.Options{CheckURL: checkURL, CheckSource: checkSource, CheckFilter: func(s string) error { return checkSource("", s) },
				CheckEndpoint: func(kind, url string) error { _, name, _ := strings.Cut(url, kind+"%"); return checkSource("", name) },
				CheckRule: func(r inventory.Rule) map[string][]string {
					if r.When == "bad" {
						return map[string][]string{"when": {"line 1, column 1: bad"}}
					}
					return nil
				}})
			if err == nil || err.Error() != tc.want {
				t.Errorf("got:\n%v\nwant:\n%s", err, tc.want)
			}
		})
	}
}

// checkURL refuses a URL of the network 10.0.0.0/8.
func checkURL(url string) error {
	if strings.Contains(url, "10.") {
		return errors.New(url + " is private")
	}
	return nil
}

// checkSource refuses the source "bad".
func checkSource(_, source string) error {
	if source == "bad" {
		return errors.New("line 1: bad")
	}
	return nil
}

func TestParseChecksAgainstEarlierInventories(t *testing.T) {
	sealed := inventory.Seal(contract(t))
	sealed.Accounts[0].ID = 5
	for name, tc := range map[string]struct{ doc, want string }{
		"a sensor type declared earlier is known":  {accountWith("decoders: [{id: d, name: d, type: other, sensors: [{sensor_type_id: temperature, key: k}]}]"), ""},
		"a SIM declared earlier is known":          {"accounts: [{name: acme, relays: {geo: [{id: g1, prefix: 4478000, action: mvno, iccid: '8944000000000000001'}]}}]", ""},
		"the same inventory":                       {"accounts: [{name: acme, tokens: [{token: acme-token-0123456}], relays: {vmn: [{id: v1, number: 447860000001, action: inactive}]}}]", ""},
		"a relay changes its number":               {"accounts: [{name: acme, relays: {vmn: [{id: v1, number: 447860000009, action: inactive}, {id: v2, number: 447860000001, action: inactive}]}}]", ""},
		"an account with an id changes its name":   {"accounts: [{name: apex, id: 5, tokens: [{token: acme-token-0123456}]}]", ""},
		"a token of another account":               {accountWith("tokens: [{token: acme-token-0123456}]"), `accounts[0].tokens[0].token: already taken by account "acme" of an earlier inventory`},
		"a number of another account":              {accountWith("relays: {vmn: [{id: v, number: 447860000001, action: inactive}]}"), `accounts[0].relays.vmn[0].number: already taken by account "acme" of an earlier inventory`},
		"a number of another relay of the account": {"accounts: [{name: acme, relays: {vmn: [{id: v2, number: 447860000001, action: inactive}]}}]", `accounts[0].relays.vmn[0].number: already taken by account "acme" of an earlier inventory`},
		"a prefix of another account":              {accountWith("relays: {geo: [{id: g, prefix: 4478000, action: black_hole}]}"), `accounts[0].relays.geo[0].prefix: already taken by account "acme" of an earlier inventory`},
		"a SIM of another account":                 {accountWith("sims: [{iccid: '8944000000000000001'}]"), `accounts[0].sims[0].iccid: already taken by account "acme" of an earlier inventory`},
		"a second imported location":               {"accounts: [{name: acme, locations: [{id: loc2, name: n, imported: true}]}]", `accounts[0].locations[0].imported: expected one imported location, but an earlier inventory declared "loc1"`},
		"another id for a name":                    {"accounts: [{name: acme, id: 6}]", "accounts[0].id: expected 5, the id of the account of this name"},
		"a mask of another secret":                 {"accounts: [{name: acme, soap: {username: acme, password: 'masked:0123456789ab'}}]", "accounts[0].soap.password: expected a secret, or the mask of the stored one"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := inventory.Parse([]byte(tc.doc), inventory.Options{Load: earlier(sealed)})
			if err == nil && tc.want != "" || err != nil && err.Error() != tc.want {
				t.Errorf("got:\n%v\nwant:\n%s", err, tc.want)
			}
		})
	}
}

func TestAnEndpointMayHaveEscapedCredentials(t *testing.T) {
	parse(t, accountWith("relays: {geo: [{id: g, prefix: 44, action: http_get, parameters: ['http://us%40er:p%3Aw@host/in?text=%m']}]}"), inventory.Options{})
}

func TestACallbackMayUseHTTPIfAllowed(t *testing.T) {
	parse(t, accountWith("callback_url: 'http://a/'"), inventory.Options{AllowHTTPCallback: true})
}

func FuzzParse(f *testing.F) {
	f.Add(relaytest.Must(os.ReadFile("testdata/contract.yaml"))(f))
	for _, seed := range []string{`{"accounts":[{"name":"a","tokens":[{"token":"masked:"}]}]}`, accountWith("sims: [{iccid: '8944000000000000001', puk: 'masked:'}]"), "accounts: &a [*a]"} {
		f.Add([]byte(seed))
	}
	sealed := inventory.Seal(contract(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := inventory.Parse(data, inventory.Options{Load: earlier(sealed)})
		if err != nil {
			return
		}
		relaytest.Equal(t, "the document after encoding", parse(t, encode(t, *d), inventory.Options{Load: earlier(sealed)}), *d)
		merged := inventory.Merge(sealed, *d)
		if got, want := encode(t, inventory.Merge(merged, *d)), encode(t, merged); got != want {
			t.Errorf("a second merge: got\n%s\nwant\n%s", got, want)
		}
	})
}
