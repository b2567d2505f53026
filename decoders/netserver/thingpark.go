package netserver

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// parseThingPark parses the documents of Actility's ThingPark (LRC-AS tunnel interface) in
// JSON, in JSON whose values are all strings, and in XML. It also parses the variants of KPN
// (without a wrapper) and of Swisscom (wrapped in data and uplinkMetrics). A payload together
// with AppSKey or PayloadEncryption is ciphertext. The downlinkUrl is a credential and is not
// stored.
func parseThingPark(p Post) ([]decoders.Frame, error) {
	body, err := thingParkJSON(p.Body)
	if err != nil {
		return nil, err
	}
	return eachFrame(ThingPark, &p, body, readThingParkFrame)
}

// unwrapThingPark removes the wrappers, so that their fields are fields of d. It
// returns the name of the document, or "" if the document has none.
func unwrapThingPark(d document) (name string) {
	d.Unwrap(func(key string) bool {
		isDocument := strings.HasPrefix(key, "DevEUI_") || key == "BS_alarm"
		if isDocument {
			name = key
		}
		return isDocument || key == "data" || key == "uplinkMetrics"
	})
	return name
}

func readThingParkFrame(d document, f *decoders.Frame) {
	name := unwrapThingPark(d)
	if name == "BS_alarm" && !d.Has("DevEUI") {
		d.Identifier(f, "DevEUI", d.Text("LrrUUID|LrrID|LrrId"))
	} else {
		d.DevEUI(f, "DevEUI")
	}
	f.Name = d.Unquote("CustomerData").Text("name")
	f.NetworkTime = d.Time(thingParkTime(d))
	f.FPort, f.HasFPort = d.FPort("FPort")
	f.FCnt, f.HasFCnt = d.FCnt("FCntUp")
	f.Payload = d.Hex("payload_hex")
	f.Encrypted = isNonEmpty(d.Value("AppSKey")) || isNonEmpty(d.Value("PayloadEncryption"))
	f.Object = thingParkValues(d)
	f.Position = d.Place("DevLAT", "DevLON")
	readThingParkGateways(d, f)
	notice := d.Text("Type")
	switch name {
	case "", "DevEUI_uplink":
		// Distinguish a join request, which has the same wrapper, from a frame.
		const joinRequest = 0
		messageType, ok := d.Int("MType", 0, 7)
		f.Kind = decoders.Uplink
		if !d.IsPresent("payload_hex") && (d.IsPresent("rawJoinRequest") || ok && messageType == joinRequest) {
			f.Kind = decoders.Join
		}
	case "DevEUI_notification":
		switch strings.ToLower(notice) {
		case "join":
			f.Kind = decoders.Join
		case "devstatusans":
			f.Kind, f.Margin, f.Battery = decoders.Status, d.coordinate("Var2"), loraPercent(d.coordinate("Var1"))
		default:
			f.Kind, f.Text = decoders.Log, "notification "+notice
		}
	case "DevEUI_location":
		f.Kind = decoders.Location
	case "DevEUI_downlink_Sent":
		f.Kind, f.Text = decoders.Downlink, "sent"
		if d.Text("DeliveryStatus") == "0" {
			causes := []string{d.Text("DeliveryFailedCause1"), d.Text("DeliveryFailedCause2"), d.Text("DeliveryFailedCause3")}
			causes = slices.DeleteFunc(causes, func(s string) bool { return s == "" || s == "00" })
			f.Kind, f.Text = decoders.Failure, "downlink not sent: "+strings.Join(causes, ", ")
		}
		f.FCnt, f.HasFCnt = 0, false // FCntUp is the counter of the last uplink
	case "DevEUI_multicast_summary":
		f.Kind, f.Text = decoders.Downlink, "multicast summary"
	case "DevEUI_alarm", "BS_alarm":
		f.Kind, f.Text = decoders.Alert, joinTexts(name, d.Text("AlarmDetails|Details|AdditionalText|Message"))
	default:
		f.Kind, f.Text = decoders.Service, name
		d.Warn(name, "is not a supported document")
	}
	setThingParkDedupID(d, f, name, notice)
}

// thingParkTime returns the name of the field with the time of a document. An uplink may also
// have DevLocTime, the time of an earlier position; a location document has no other time.
func thingParkTime(d document) string {
	if d.IsPresent("DevLocTime") && !d.IsPresent("Time") {
		return "DevLocTime"
	}
	return "Time"
}

// thingParkValues returns the values that IoT Flow's driver decoded: the object payload or, if
// that is missing, the records of the points, such as {"t":{"record":21.5}}.
func thingParkValues(d document) map[string]any {
	points := d.Object("points")
	if d.Kind("payload") == jsonbody.Object {
		return d.Object("payload")
	}
	var history []any
	for _, name := range slices.Sorted(maps.Keys(points)) {
		point, _ := points[name].(map[string]any)
		if record, ok := point["record"]; ok {
			points[name] = record
		} else if records, isList := point["records"].([]any); isList {
			delete(points, name)
			// Convert the records to {variable, value, time}, a history for package values.
			for _, r := range records {
				if record, _ := r.(map[string]any); record != nil {
					r = map[string]any{"variable": name, "value": record["value"], "time": record["eventTime"]}
				}
				history = append(history, r)
			}
		} else {
			d.Warn("points."+name, "has neither record nor records")
		}
	}
	if len(history) > 0 {
		points["records"] = history
	}
	return points
}

// isNonEmpty reports whether a value is neither missing nor null nor an empty string.
func isNonEmpty(v jsonbody.Value) bool { return isPresent(v) && len(v.Raw()) > 0 }

// readThingParkGateways reads the receptions. Lrrs lists all of them without positions. The
// document itself has the best one, with the gateway's position.
func readThingParkGateways(d document, f *decoders.Frame) {
	reception := func(d document) decoders.Gateway {
		return decoders.Gateway{ID: d.Text("Lrrid"), RSSI: d.Number("LrrRSSI"), SNR: d.Number("LrrSNR")}
	}
	best := reception(d)
	best.Position = d.Place("LrrLAT", "LrrLON")
	f.Gateways = d.Gateways("Lrrs.Lrr", reception)
	setBestGateway(f, best)
	if i := slices.IndexFunc(f.Gateways, func(g decoders.Gateway) bool { return g.ID == best.ID }); i >= 0 {
		f.Gateways[i].Position = best.Position
	}
}

// setThingParkDedupID sets the DedupID from the counter, the time, the MIC, the document's name and
// the notification type, which are equal in a repeated post.
func setThingParkDedupID(d document, f *decoders.Frame, name, notice string) {
	timeText, mic := string(d.Value(thingParkTime(d)).Raw()), d.Text("mic_hex")
	n, _ := d.FCnt("FCntDn")
	switch {
	case timeText == "" && mic == "":
		return
	case f.Kind != decoders.Downlink && f.Kind != decoders.Failure:
		n = f.FCnt
	}
	if timeText == "" {
		f.DedupSpan = repeatSpan
	}
	f.DedupID = strings.Join([]string{strconv.FormatInt(n, 10), timeText, mic, name, notice}, ":")
}
