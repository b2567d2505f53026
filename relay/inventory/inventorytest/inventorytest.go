// Package inventorytest has an inventory document for the tests of relay/inventory and of the admin
// API.
package inventorytest

// Secret is the webhook secret of the account in Acme.
const Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// Acme is a document of one account with a record of most kinds.
const Acme = `
sensor_types: [{id: temperature, name: Temperature, metric_units: "°C"}, {id: humidity, name: Humidity}]
accounts:
  - name: acme
    permissions: [mvno]
    webhook_secret: ` + Secret + `
    callback_url: https://example.com/cb
    tokens: [{token: hook-token-0123456, scopes: [webhook], secret: shh, source: hq}, {token: plain-token-0123456}]
    relays:
      geo: [{id: g1, prefix: "4478000", action: http_get, parameters: ["https://example.com/?m=%m"]}]
      vmn: [{id: v1, number: "447860000001", action: inactive}]
    locations: [{id: loc1, name: Default, imported: true}]
    decoders: [{id: d1, name: Probe, type: lorawan, codec: cayenne_lpp, sensors: [{sensor_type_id: temperature, key: temperature_1}]}]
`
