package netserver

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// The ranks of the keys of a generic body that identify its device, the preferred one first.
// The documented keys have lower ranks.
const (
	euiRank = 4 + iota // another spelling of devEUI
	idRank
)

// readGenericFrame parses the generic format: an object of values, or a list of such objects, each
// one frame. The device is identified by the address or by one of the keys deviceId,
// device_id, deviceEUI, devEUI, another spelling of devEUI, id. The time of
// the sample has the key time or timestamp. Other keys are values. An id that probably identifies
// the message (isMessageID) is refused, because each message would create a device.
func readGenericFrame(d document, f *decoders.Frame) {
	p, keys := d.post(), []string{"deviceId", "device_id", "deviceEUI", "devEUI"}
	f.Kind, f.Object = decoders.Uplink, map[string]any{}
	if d.kind() != jsonbody.Object {
		d.Refuse("", "must be an object of values")
		return
	}
	bestRank := math.MaxInt
	d.All(func(key string, v jsonbody.Value, _ document) {
		rank := slices.Index(keys, key)
		if key == "id" {
			rank = idRank
		}
		switch {
		case rank >= 0:
			if id, ok := v.Text(); ok && id != "" && rank < bestRank {
				f.Identifier, bestRank = id, rank
			}
			return
		case key == "time", key == "timestamp":
			setSampleTime(f, key, v)
			return
		case isEUIName(key):
			id, _ := v.Text()
			eui, ok := decoders.NormalizeDevEUI(id)
			if ok && euiRank < bestRank {
				f.Identifier, bestRank = eui, euiRank
			}
			if ok {
				return
			}
		}
		f.Object[key] = v.Any()
		if eui := euiWithin(f.Object[key]); eui != "" && euiRank < bestRank {
			f.Identifier, bestRank = eui, euiRank
		}
	})
	if bestRank == idRank && p.DeviceID == "" && isMessageID(f.Identifier, f.Object, p.ReceivedAt) {
		d.Refuse("id", "seems to identify the message, not the device: identify the device by deviceId or in the address")
		return
	}
	// Prefer the device in the address.
	if f.Identifier = cmp.Or(p.DeviceID, f.Identifier); f.Identifier == "" {
		d.Refuse("deviceId", "is missing, and so are device_id, deviceEUI, devEUI, id and a device in the address")
	}
	if eui, ok := decoders.NormalizeDevEUI(f.Identifier); ok {
		f.Identifier, f.IsDevEUI = eui, true
	}
}

// bareName returns a key in lower case without separators.
func bareName(key string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', ' ':
			return -1
		}
		return unicode.ToLower(r)
	}, key)
}

func isEUIName(key string) bool {
	switch bareName(key) {
	case "deveui", "deviceeui", "eui", "eui64", "deveui64":
		return true
	}
	return false
}

// euiWithin returns the first EUI in an object under a key of isEUIName, or "".
func euiWithin(v any) string {
	object, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if text, ok := object[key].(string); ok && isEUIName(key) {
			if eui, ok := decoders.NormalizeDevEUI(text); ok {
				return eui
			}
		}
	}
	return ""
}

// isMessageID reports whether the id of a body probably identifies the message, not the device: a
// time, any id in a body with the members of a network server's frame, or a UUID or ULID in a body
// with another name of the device.
func isMessageID(id string, object map[string]any, receivedAt time.Time) bool {
	if isRecentTime(id, receivedAt) {
		return true
	}
	var hasCounter, hasPayload, hasRadio, hasName bool
	for key := range object {
		switch bareName(key) {
		case "fcnt", "fcntup", "fcntdown", "framecounter", "framecount", "counterup", "seqno", "seqnumber", "sequencenumber":
			hasCounter = true
		case "payload", "payloadhex", "payloadraw", "rawpayload", "frmpayload", "data", "dataframe", "frame", "hex":
			_, isText := object[key].(string)
			hasPayload = hasPayload || isText
		case "port", "fport", "rssi", "snr", "lsnr", "freq", "frequency", "datr", "dr", "datarate", "gateway", "gateways", "gws", "rxinfo":
			hasRadio = true
		case "device", "devicename", "devname", "imei", "serial", "serialnumber", "sn", "mac", "macaddress", "sensorid", "nodeid", "unitid", "name":
			hasName = true
		}
	}
	// A UUID has 32 hex digits, a ULID 26 of its own alphabet.
	_, isUniqueID := decoders.HexDigits(strings.ToLower(strings.ReplaceAll(id, "-", "")), 32)
	if len(id) == 26 {
		isUniqueID = strings.Trim(strings.ToUpper(id), "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ""
	}
	return (hasCounter || hasPayload) && hasRadio || hasName && isUniqueID
}

// isRecentTime reports whether digits are a time of the last ten years in milliseconds,
// microseconds or nanoseconds, or a time within a day of the receipt in seconds.
func isRecentTime(id string, receivedAt time.Time) bool {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return false
	}
	if receivedAt.IsZero() {
		receivedAt = time.UnixMilli(n).Add(time.Hour)
	}
	const day = 24 * time.Hour
	switch len(id) {
	case 10:
		return receivedAt.Sub(time.Unix(n, 0)).Abs() < day
	case 13:
		n *= 1e6
	case 16:
		n *= 1e3
	case 19:
	default:
		return false
	}
	age := receivedAt.Sub(time.Unix(0, n))
	return age > -day && age < 10*365*day
}

// setSampleTime sets the time of the sample, unless another key has set it.
func setSampleTime(f *decoders.Frame, key string, v jsonbody.Value) {
	t, ok := looseTime(v)
	switch {
	case ok && f.SampleTime.IsZero():
		f.SampleTime = t
	case !ok && isPresent(v) && f.TimeNote == "":
		f.TimeNote = key + ": is neither ISO 8601 nor seconds or milliseconds since 1970: " + quoteClipped(v.Raw())
	}
}
