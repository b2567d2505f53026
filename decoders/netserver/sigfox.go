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

// parseSigfox reads Sigfox's callbacks (support.sigfox.com, callbacks): the customer writes
// the template, so the same names come as JSON, as a form or as a query, mostly all strings.
// A name that is not Sigfox's is a value of the customer's own, of use where the callback
// carries no data.
func parseSigfox(p Post) ([]decoders.Frame, error) {
	return eachFrame(Sigfox, &p, sigfoxBody(p), sigfoxFrame)
}

// sigfoxBody gives a form or a query the form of JSON.
func sigfoxBody(p Post) []byte {
	body := bytes.Trim(p.Body, " \t\r\n\xef\xbb\xbf")
	switch {
	case len(body) == 0:
		return stringsAsJSON(p.Query)
	case body[0] == '{':
		return p.Body
	}
	form, _ := url.ParseQuery(string(body)) // what can be read of it
	return stringsAsJSON(form)
}

func sigfoxFrame(d document, f *decoders.Frame) {
	d.Identifier(f, "device", cmp.Or(d.Text("device"), d.Text("deviceId"), sigfoxID(d.Text("id"))))
	f.NetworkTime = d.Time("time")
	f.Payload = d.Hex("data")
	located, lists := sigfoxHeard(d, f)
	// It says more about a frame that DATA has brought.
	advanced := located || lists || d.IsPresent("lqi|linkQuality") || d.Flag("duplicate")
	// Recognise the callback by its content: none has a name. A position or a list of
	// stations without data and without measurements of the customer's own is kept apart
	// from the frame's own kind, so that it cannot be taken for the frame when it comes
	// first.
	custom := sigfoxCustom(d)
	switch {
	case d.IsPresent("data"):
		f.Kind, f.Supplement, f.Extensible = decoders.Uplink, advanced, !advanced
		f.Object, f.BesidePayload = custom, custom != nil
	case d.IsPresent("downlinkAck"): // SERVICE ACKNOWLEDGE
		f.Kind = decoders.Nack
		if d.Flag("downlinkAck") {
			f.Kind = decoders.Ack
		}
		warnUnused(d, custom, "infoCode", "infoMessage", "downlinkOverusage")
	case d.IsPresent("severity|info|infoMessage|infoCode"):
		f.Kind, f.Text = decoders.Failure, joinValues(custom, "severity", "infoCode", "info", "infoMessage")
		warnUnused(d, custom, "severity", "infoCode", "info", "infoMessage")
	case measures(custom, "batt", "temp"):
		f.Kind, f.Object, f.Supplement = decoders.Uplink, custom, advanced
	case located:
		f.Kind, f.Supplement = decoders.Location, true
		warnUnused(d, custom)
	case d.IsPresent("batt|temp"):
		f.Kind, f.Object = decoders.Status, custom
		f.Text = joinValues(f.Object, "batt", "temp")
	case advanced:
		f.Kind, f.Supplement = decoders.Service, true
		warnUnused(d, custom)
	case custom != nil:
		f.Kind, f.Object = decoders.Uplink, custom
	default:
		f.Kind = decoders.Service
		d.Warn("data", "is missing, and there are no other values")
	}
	if f.FCnt, f.HasFCnt = d.Int("seqNumber", 0, 1<<53); f.HasFCnt && !f.NetworkTime.IsZero() {
		f.DedupID = strconv.FormatInt(f.NetworkTime.Unix(), 10) + ":" + strconv.FormatInt(f.FCnt, 10)
	} else if f.Kind == decoders.Uplink {
		f.Supplement, f.Extensible = false, false // it cannot be matched to another callback
	}
}

// sigfoxID returns an id that is one of Sigfox's, at most eight hex digits. Another id
// is that of the message, of a sender that is not Sigfox.
func sigfoxID(id string) string {
	if _, err := strconv.ParseUint(id, 16, 32); err != nil {
		return ""
	}
	return id
}

// measures reports whether there is a number, true or false under other names than the
// excepted ones.
func measures(custom map[string]any, except ...string) bool {
	for name, v := range custom {
		switch v.(type) {
		case float64, bool, map[string]any, []any:
			if !slices.Contains(except, name) {
				return true
			}
		}
	}
	return false
}

// warnUnused notes the customer's own values in an event that has no readings, apart
// from those that are read.
func warnUnused(d document, custom map[string]any, read ...string) {
	for _, name := range slices.Sorted(maps.Keys(custom)) {
		if !slices.Contains(read, name) && custom[name] != nil {
			d.Warn(name, "is not used: this callback has no data")
		}
	}
}

// sigfoxCustom takes the values of the customer's own.
func sigfoxCustom(d document) (custom map[string]any) {
	// The names of Sigfox's and of the address.
	names := []string{
		"device", "deviceId", "id", "time", "data", "seqNumber", "deviceTypeId", "rssi", "snr", "station",
		"lat", "lng", "radius", "duplicate", "computedLocation", "duplicates", "reception", "lqi", "linkQuality",
		"downlinkAck", "ack", "longPolling", "avgSnr", "operatorName", "countryCode", "deviceTypeName", "fixedLat", "fixedLng",
		"batch", "decoder_id", "token", "event",
	}
	const most = 200
	d.All(func(key string, v jsonbody.Value, _ document) {
		switch {
		case slices.Contains(names, key) || !isPresent(v):
			return
		case len(custom) >= most:
			d.Warn(key, fmt.Sprintf("is not used: it comes after %d other values", most))
			return
		case custom == nil:
			custom = make(map[string]any)
		}
		if v.Kind == jsonbody.String {
			custom[key] = loosely(v.String())
			return
		}
		custom[key] = v.Any()
	})
	return custom
}

// sigfoxHeard reads which stations heard the frame and where the device is. It
// reports whether the callback is about a position, known or not, and whether it
// lists stations.
func sigfoxHeard(d document, f *decoders.Frame) (located, lists bool) {
	station := d.reception("station")
	// Beside a radius lat and lng are the device's, else the station's, rounded.
	position, computed, radius := d.Place("lat", "lng"), d.IsPresent("computedLocation"), d.IsPresent("radius")
	if radius && !computed {
		f.Position = position
	} else {
		station.Position = position
	}
	if computed {
		f.Position = nil
		// Read the position that the network computed; status 0 means that there is none.
		if location := d.Unquote("computedLocation"); !location.IsPresent("status") || location.Flag("status") {
			f.Position = location.Place("lat", "lng")
		}
	}
	const list = "duplicates|reception" // as the callback and the backend's interface name it
	if lists = d.IsPresent(list); lists {
		f.Gateways = d.As("duplicates").Unquote(list).receptions(func(d document) decoders.Gateway {
			return decoders.Gateway{
				ID:   d.Text("bsId|id"),
				RSSI: d.As("duplicates.rssi").Number("rssi|RSSI"),
				SNR:  d.As("duplicates.snr").Number("snr|SNR"),
			}
		})
	}
	setBestGateway(f, station)
	return computed || radius, lists
}

// AwaitsDownlink reports whether a post of Sigfox's waits for a downlink: its
// template has the variable ack, and that is true. An answer with nothing to
// send is 204.
func AwaitsDownlink(p Post) bool {
	d, _ := readDocument(sigfoxBody(p))
	ack, _ := d.Value("ack").Text()
	return strings.EqualFold(ack, "true") || ack == "1"
}
