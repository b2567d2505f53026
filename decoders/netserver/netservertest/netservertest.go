// Package netservertest has signed posts of network servers, for the tests of packages that
// receive posts.
package netservertest

// The key, token and body of the example that Actility publishes with its Python
// application server. ThingParkToken signs the query of the post, too.
const (
	ThingParkKey   = "F3203A20A2E8DFAF6686B621F56D05E3"
	ThingParkToken = "196c22898bf95fcf48b72be198c89256410660b9b514539651344baa594ad74f"
	ThingParkBody  = `{"DevEUI_uplink":{"CustomerID":"100002167","FCntUp":18,"DevEUI":"20635F0108000496","FPort":17,` +
		`"payload_hex":"032ce4850919d85d4c9f793ad148d24f32f3c6b5488f5a087cbeb1488f5a998c83ab"}}`
	// ThingParkQuery is the signed query, in which a plus stands for itself.
	ThingParkQuery = "LrnDevEui=20635F0108000496&LrnFPort=17&LrnInfos=TWA_100002167.1111.AS-1-111974&AS_ID=TWA_100002167.1111.AS&Time=2021-04-07T08:49:51.551+00:00"
)
