package netserver

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// parseThingPark reads the documents of Actility's ThingPark (LRC-AS tunnel interface), in
// JSON, in JSON whose values are all strings, and in XML, and the forms that KPN (without a
// wrapper) and Swisscom (under data and uplinkMetrics) make of them. A payload together with
// AppSKey or PayloadEncryption is ciphertext. The downlinkUrl is a credential and is never
// kept.
func parseThingPark(p Post) ([]decoders.Frame, error) {
	body, err := thingParkJSON(p.Body)
	if err != nil {
		return nil, err
	}
	return eachFrame(ThingPark, &p, body, thingParkFrame)
}

// thingParkDocument makes the fields within the wrappers those of the body, and
// returns the name of the document, empty for the forms without one.
func thingParkDocument(d document) (name string) {
	d.Unwrap(func(key string) bool {
		named := strings.HasPrefix(key, "DevEUI_") || key == "BS_alarm"
		if named {
			name = key
		}
		return named || key == "data" || key == "uplinkMetrics"
	})
	return name
}

func thingParkFrame(d document, f *decoders.Frame) {
	name := thingParkDocument(d)
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
	f.Encrypted = isGiven(d.Value("AppSKey")) || isGiven(d.Value("PayloadEncryption"))
	f.Object = thingParkDecoded(d)
	f.Position = d.Place("DevLAT", "DevLON")
	thingParkGateways(d, f)
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
		f.FCnt, f.HasFCnt = 0, false // of the uplink before
	case "DevEUI_multicast_summary":
		f.Kind, f.Text = decoders.Downlink, "multicast summary"
	case "DevEUI_alarm", "BS_alarm":
		f.Kind, f.Text = decoders.Alert, joinTexts(name, d.Text("AlarmDetails|Details|AdditionalText|Message"))
	default:
		f.Kind, f.Text = decoders.Service, name
		d.Warn(name, "is not a document that is read")
	}
	thingParkDedup(d, f, name, notice)
}

// thingParkTime names the time of a document. An uplink may also have the time of an
// earlier position, a document about a position has only that one.
func thingParkTime(d document) string {
	if d.IsPresent("DevLocTime") && !d.IsPresent("Time") {
		return "DevLocTime"
	}
	return "Time"
}

// thingParkDecoded takes what IoT Flow's driver decoded, if it is an object, else
// its points by their record: {"t":{"record":21.5}}.
func thingParkDecoded(d document) map[string]any {
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
			// Name the values, so that each becomes a reading at its time under the point's name.
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

// isGiven reports whether a value is neither missing nor null nor an empty text.
func isGiven(v jsonbody.Value) bool { return isPresent(v) && len(v.Raw()) > 0 }

// thingParkGateways reads how the frame was heard. The document itself has the best
// reception with the gateway's position, Lrrs all of them without positions.
func thingParkGateways(d document, f *decoders.Frame) {
	receiver := func(d document) decoders.Gateway {
		return decoders.Gateway{ID: d.Text("Lrrid"), RSSI: d.Number("LrrRSSI"), SNR: d.Number("LrrSNR")}
	}
	best := receiver(d)
	best.Position = d.Place("LrrLAT", "LrrLON")
	f.Gateways = d.Gateways("Lrrs.Lrr", receiver)
	setBestGateway(f, best)
	if i := slices.IndexFunc(f.Gateways, func(g decoders.Gateway) bool { return g.ID == best.ID }); i >= 0 {
		f.Gateways[i].Position = best.Position
	}
}

// thingParkDedup sets the DedupID from the counter and the time, which a post that is
// repeated or that comes late has unchanged.
func thingParkDedup(d document, f *decoders.Frame, name, notice string) {
	path, mic := string(d.Value(thingParkTime(d)).Raw()), d.Text("mic_hex")
	n, _ := d.FCnt("FCntDn")
	switch {
	case path == "" && mic == "":
		return
	case f.Kind != decoders.Downlink && f.Kind != decoders.Failure:
		n = f.FCnt
	}
	if path == "" {
		f.DedupSpan = repeatSpan
	}
	f.DedupID = strings.Join([]string{strconv.FormatInt(n, 10), path, mic, name, notice}, ":")
}
