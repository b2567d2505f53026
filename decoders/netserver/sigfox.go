package netserver

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// parseSigfox parses Sigfox's callbacks (support.sigfox.com, callbacks). The customer writes
// the template, so the same names are posted as JSON, as a form or as a query, and most values
// are strings. Other names are values of the customer, which become readings if the callback
// has no data.
func parseSigfox(p Post) ([]decoders.Frame, error) {
	return eachFrame(Sigfox, &p, sigfoxBody(p), readSigfoxFrame)
}

// sigfoxBody returns the body, a form or a query as JSON.
func sigfoxBody(p Post) []byte {
	body := bytes.Trim(p.Body, " \t\r\n\xef\xbb\xbf")
	switch {
	case len(body) == 0:
		return formAsJSON(p.Query)
	case body[0] == '{':
		return p.Body
	}
	form, _ := url.ParseQuery(string(body)) // without the malformed pairs
	return formAsJSON(form)
}

func readSigfoxFrame(d document, f *decoders.Frame) {
	d.Identifier(f, "device", cmp.Or(d.Text("device"), d.Text("deviceId"), sigfoxID(d.Text("id"))))
	f.NetworkTime = d.Time("time")
	f.Payload = d.Hex("data")
	hasLocation, hasStations := readSigfoxReceptions(d, f)
	// An advanced callback adds to a frame of an earlier DATA callback.
	isAdvanced := hasLocation || hasStations || d.IsPresent("lqi|linkQuality") || d.Flag("duplicate")
	// Recognise the callback by its content, because callbacks have no names. A position or a
	// list of stations without data and without measurements of the customer is not an uplink,
	// so that it cannot replace the uplink if it arrives first.
	values := sigfoxCustomValues(d)
	switch {
	case d.IsPresent("data"):
		f.Kind, f.Supplement, f.Extensible = decoders.Uplink, isAdvanced, !isAdvanced
		f.Object, f.BesidePayload = values, values != nil
	case d.IsPresent("downlinkAck"): // SERVICE ACKNOWLEDGE
		f.Kind = decoders.Nack
		if d.Flag("downlinkAck") {
			f.Kind = decoders.Ack
		}
		warnUnused(d, values, "infoCode", "infoMessage", "downlinkOverusage")
	case d.IsPresent("severity|info|infoMessage|infoCode"):
		f.Kind, f.Text = decoders.Failure, joinValues(values, "severity", "infoCode", "info", "infoMessage")
		warnUnused(d, values, "severity", "infoCode", "info", "infoMessage")
	case hasMeasurement(values, "batt", "temp"):
		f.Kind, f.Object, f.Supplement = decoders.Uplink, values, isAdvanced
	case hasLocation:
		f.Kind, f.Supplement = decoders.Location, true
		warnUnused(d, values)
	case d.IsPresent("batt|temp"):
		f.Kind, f.Object = decoders.Status, values
		f.Text = joinValues(f.Object, "batt", "temp")
	case isAdvanced:
		f.Kind, f.Supplement = decoders.Service, true
		warnUnused(d, values)
	case values != nil:
		f.Kind, f.Object = decoders.Uplink, values
	default:
		f.Kind = decoders.Service
		d.Warn("data", "is missing, and there are no other values")
	}
	if f.FCnt, f.HasFCnt = d.Int("seqNumber", 0, 1<<53); f.HasFCnt && !f.NetworkTime.IsZero() {
		f.DedupID = strconv.FormatInt(f.NetworkTime.Unix(), 10) + ":" + strconv.FormatInt(f.FCnt, 10)
	} else if f.Kind == decoders.Uplink {
		f.Supplement, f.Extensible = false, false // without an identifier, callbacks cannot be matched
	}
}

// sigfoxID returns id if it is the id of a device, at most eight hex digits, or else "". Any other
// id belongs to a message of another sender.
func sigfoxID(id string) string {
	if _, err := strconv.ParseUint(id, 16, 32); err != nil {
		return ""
	}
	return id
}

// hasMeasurement reports whether the customer's values include a number or a boolean whose name is
// not excluded.
func hasMeasurement(values map[string]any, excluded ...string) bool {
	for name, v := range values {
		switch v.(type) {
		case float64, bool, map[string]any, []any:
			if !slices.Contains(excluded, name) {
				return true
			}
		}
	}
	return false
}

// warnUnused warns of the customer's values in an event without readings, except values with
// one of the names.
func warnUnused(d document, values map[string]any, names ...string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(names, name) && values[name] != nil {
			d.Warn(name, "is not used: this callback has no data")
		}
	}
}

// sigfoxCustomValues returns the values of the customer.
func sigfoxCustomValues(d document) (custom map[string]any) {
	// The names of Sigfox's variables and of the parameters in the address.
	names := []string{
		"device", "deviceId", "id", "time", "data", "seqNumber", "deviceTypeId", "rssi", "snr", "station",
		"lat", "lng", "radius", "duplicate", "computedLocation", "duplicates", "reception", "lqi", "linkQuality",
		"downlinkAck", "ack", "longPolling", "avgSnr", "operatorName", "countryCode", "deviceTypeName", "fixedLat", "fixedLng",
		"batch", "decoder_id", "token", "event",
	}
	const maxValues = 200
	d.All(func(key string, v jsonbody.Value, _ document) {
		switch {
		case slices.Contains(names, key) || !isPresent(v):
			return
		case len(custom) >= maxValues:
			d.Warn(key, fmt.Sprintf("is not used: it comes after %d other values", maxValues))
			return
		case custom == nil:
			custom = make(map[string]any)
		}
		if v.Kind == jsonbody.String {
			custom[key] = convertText(v.String())
			return
		}
		custom[key] = v.Any()
	})
	return custom
}

// readSigfoxReceptions reads the receiving stations and the position of the device. hasLocation
// reports whether the callback has a position, even an unknown one, and hasStations whether it
// has a list of stations.
func readSigfoxReceptions(d document, f *decoders.Frame) (hasLocation, hasStations bool) {
	station := d.reception("station")
	// With a radius, lat and lng are the device's position, else the station's rounded position.
	position, computed, radius := d.Place("lat", "lng"), d.IsPresent("computedLocation"), d.IsPresent("radius")
	if radius && !computed {
		f.Position = position
	} else {
		station.Position = position
	}
	if computed {
		f.Position = nil
		// Read the position that the network computed, unless its status is 0.
		if location := d.Unquote("computedLocation"); !location.IsPresent("status") || location.Flag("status") {
			f.Position = location.Place("lat", "lng")
		}
	}
	const list = "duplicates|reception" // the names in the callback and in the backend's API
	if hasStations = d.IsPresent(list); hasStations {
		f.Gateways = d.As("duplicates").Unquote(list).receptions(func(d document) decoders.Gateway {
			return decoders.Gateway{
				ID:   d.Text("bsId|id"),
				RSSI: d.As("duplicates.rssi").Number("rssi|RSSI"),
				SNR:  d.As("duplicates.snr").Number("snr|SNR"),
			}
		})
	}
	setBestGateway(f, station)
	return computed || radius, hasStations
}

// AwaitsDownlink reports whether a post of Sigfox requests a downlink: its
// template has the variable ack, and that is true. The status 204 means no downlink.
func AwaitsDownlink(p Post) bool {
	d, _ := readDocument(sigfoxBody(p))
	ack, _ := d.Value("ack").Text()
	return strings.EqualFold(ack, "true") || ack == "1"
}
