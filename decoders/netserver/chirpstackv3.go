package netserver

import (
	"cmp"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// readChirpStackV3Frame parses the events of ChirpStack v3's HTTP integration
// (chirpstack-application-server internal/integration/marshaler). The JSON marshaler writes
// EUIs in base64 and the decoded object in a string. The JSON_V3 marshaler writes EUIs in hex;
// so do LoRaServer and Milesight's gateways, with other names for the members of a reception.
func readChirpStackV3Frame(d document, f *decoders.Frame) {
	v := d.Value("devEUI")
	f.Identifier, f.IsDevEUI = decoders.NormalizeDevEUI(eui(v))
	switch {
	case v.Kind == jsonbody.Missing:
		d.Refuse("devEUI", noDevice)
	case !f.IsDevEUI:
		d.RefuseField("devEUI", "is neither 16 hex digits nor base64 of 8 bytes")
	}
	f.Name = d.Text("deviceName")
	f.FCnt, f.HasFCnt = d.FCnt("fCnt")
	f.FPort, f.HasFPort = d.FPort("fPort")
	f.Payload = d.Base64("data")
	// Read the decoded object, also from a string.
	f.Object = d.Object("object")
	switch v := d.Value("objectJSON"); v.Kind {
	case jsonbody.Missing, jsonbody.Null:
	case jsonbody.Object:
		f.Object = d.Object("objectJSON")
	default:
		if object, ok := parseObject(v); ok {
			f.Object = object
		} else {
			d.Warn("objectJSON", "is not an object in JSON")
		}
	}
	f.Position = d.Position("location")
	uplinkID := readChirpStackV3Gateways(d, f)
	setChirpStackV3Kind(d, f)
	f.Margin, f.Battery = readChirpStackV3Status(d, f.Kind)
	if f.Kind == decoders.TxAck && d.IsPresent("gatewayID") {
		f.Gateways = []decoders.Gateway{{ID: eui(d.Value("gatewayID"))}}
	}
	// Use the time of the gateways or, if it is missing, the time of the server. Milesight's
	// gateways write the server's time in an invalid form.
	server := d.Time("time|publishedAt")
	earliest := gatewayTime(f.Gateways, server)
	if f.NetworkTime = cmp.Or(plausibleTime(f.Gateways, server, earliest), server); !earliest.IsZero() && !f.NetworkTime.Equal(earliest) {
		noteWrongTime(f, "rxInfo.time", earliest)
	}
	// Identify the frame by the first identifier of a reception, by the server's time, or by
	// the time of the gateways.
	counter, serverText := strconv.FormatInt(f.FCnt, 10)+":", string(d.Value("time|publishedAt").Raw())
	switch {
	case uplinkID != "":
		f.DedupID = counter + uplinkID + ":" + string(f.Kind)
	case serverText != "":
		f.DedupID = counter + serverText + ":" + string(f.Kind)
	case counterID(f) != "":
		f.DedupID = counterID(f) + ":" + string(f.Kind)
	}
}

// eui returns an EUI in lower-case hex, from hex or base64.
func eui(v jsonbody.Value) string {
	s, _ := v.Text()
	if id, ok := decoders.NormalizeDevEUI(s); ok {
		return id
	}
	if b, ok := v.Base64(); ok && len(b) == 8 {
		return hex.EncodeToString(b)
	}
	return s
}

// readChirpStackV3Status reads the margin and the battery. Old servers send 256 for an unknown
// margin. In an uplink the values are in deviceStatusMargin and deviceStatusBattery only.
func readChirpStackV3Status(d document, kind decoders.FrameKind) (margin, battery *float64) {
	marginPath, batteryPath := "margin|deviceStatusMargin", "battery|deviceStatusBattery"
	if kind == decoders.Uplink {
		marginPath, batteryPath = "deviceStatusMargin", "deviceStatusBattery"
	}
	if margin = d.Number(marginPath); margin != nil && *margin > 255 {
		margin = nil
	}
	battery = d.LoRaBattery(batteryPath)
	if kind == decoders.Uplink {
		return margin, battery
	}
	if d.IsPresent("batteryLevel") {
		battery = d.Percent("batteryLevel")
	}
	if d.Flag("externalPowerSource") || d.Flag("batteryLevelUnavailable") {
		battery = nil
	}
	return margin, battery
}

// readChirpStackV3Gateways reads the receptions and returns the first identifier of a reception, a
// UUID in base64 or hex. The receptions of old gateways have no identifier or zeros.
func readChirpStackV3Gateways(d document, f *decoders.Frame) (uplinkID string) {
	f.Gateways = d.Gateways("rxInfo", func(d document) decoders.Gateway {
		v := d.Value("uplinkID")
		id := v.String()
		if b, ok := v.Base64(); ok && len(b) == 16 {
			id = hex.EncodeToString(b)
		}
		if uplinkID == "" && strings.Trim(id, "0-") != "" {
			uplinkID = id
		}
		g := decoders.Gateway{ID: eui(d.Value("gatewayID|mac")), RSSI: d.Number("rssi"), SNR: d.Number("loRaSNR"), Time: d.Time("time")}
		if g.Position = d.Position("location"); g.Position == nil {
			g.Position = d.Place("latitude", "longitude") // LoRaServer's names
		}
		return g
	})
	fillSNR(f.Gateways)
	return uplinkID
}

// setChirpStackV3Kind sets the kind of the frame from the event in the query or, if there is
// none, from the members of the body.
func setChirpStackV3Kind(d document, f *decoders.Frame) {
	name := d.post().Query.Get("event")
	failure, reason := d.Text("type"), d.Text("error")
	integration, kind := d.Text("integrationName"), d.Text("eventType")
	acknowledged := d.Bool("acknowledged")
	switch f.Kind = chirpStackKind(name); {
	case name == "":
		f.Kind = chirpStackV3ImpliedKind(d, f)
	case name == "error":
		f.Kind = decoders.Failure
	case f.Kind == "":
		d.Refuse("event", unknownEvent(name))
	}
	switch {
	case f.Kind == decoders.Uplink:
		f.Position = nil
	case f.Kind == decoders.Ack && !acknowledged:
		f.Kind = decoders.Nack
	case f.Kind == decoders.Failure:
		f.Text = failure + ": " + reason
	case f.Kind == decoders.Service:
		f.Text = integration + " " + kind
	}
}

// chirpStackV3ImpliedKind returns the kind of event that the first specific member implies.
func chirpStackV3ImpliedKind(d document, f *decoders.Frame) decoders.FrameKind {
	if d.IsPresent("fPort") || d.IsPresent("data") {
		return decoders.Uplink
	}
	kinds := map[string]decoders.FrameKind{
		"acknowledged": decoders.Ack, "margin": decoders.Status, "batteryLevel": decoders.Status, "error": decoders.Failure,
		"location": decoders.Location, "gatewayID": decoders.TxAck, "integrationName": decoders.Service,
	}
	for key := range d.Keys() {
		if kind, ok := kinds[key]; ok && d.IsPresent(key) {
			return kind
		}
	}
	if f.HasFCnt {
		return decoders.Uplink
	}
	return decoders.Join
}
