package netserver

import "github.com/penstock/penstock/decoders"

// sigfoxHeard reads which stations heard the frame and where the device is. It
// tells whether the callback speaks of a position, known or not, and whether it
// lists stations.
func sigfoxHeard(d document, f *decoders.Frame) (located, lists bool) {
	station := decoders.Gateway{ID: d.Text("station"), RSSI: d.Number("rssi"), SNR: d.Number("snr")}
	// Beside a radius lat and lng are the device's, else the station's, rounded.
	at, computed, radius := d.Place("lat", "lng", ""), d.Has("computedLocation"), d.Given("radius")
	if radius && !computed {
		f.Position = at
	} else {
		station.Position = at
	}
	if computed {
		f.Position = sigfoxComputed(d.Unquote("computedLocation").In("computedLocation"))
	}
	const list = "duplicates|reception" // as the callback and the backend's interface name it
	if lists = d.Has(list); lists {
		f.Gateways = d.Unquote(list).As("duplicates").Gateways(list, sigfoxDuplicate)
	}
	if len(f.Gateways) == 0 && (station.ID != "" || station.RSSI != nil) {
		f.Gateways = []decoders.Gateway{station}
	}
	return computed || radius, lists
}

func sigfoxDuplicate(d document) decoders.Gateway {
	return decoders.Gateway{
		ID:   d.Text("bsId|id"),
		RSSI: d.As("duplicates.rssi").Number("rssi|RSSI"),
		SNR:  d.As("duplicates.snr").Number("snr|SNR"),
	}
}

// sigfoxComputed is the position that the network worked out. Status 0 says
// that there is none.
func sigfoxComputed(d document) *decoders.Position {
	if d.Has("status") && !d.Flag("status") {
		return nil
	}
	return d.Place("lat", "lng", "")
}
