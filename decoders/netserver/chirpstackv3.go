package netserver

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// parseChirpStackV3 reads the events of ChirpStack v3's HTTP integration
// (chirpstack-application-server internal/integration/marshaler): the JSON
// marshaler, whose EUIs are base64 and whose decoded object is a string, and
// JSON_V3, whose EUIs are hex. LoRaServer and Milesight's gateways post the
// latter with names of their own for the radio's part.
func parseChirpStackV3(p Post) ([]decoders.Frame, error) {
	return oneFrame(ChirpStackV3, p.Body, func(d document, f *decoders.Frame) { chirpStackV3Frame(d, f, p.Query.Get("event")) })
}

func chirpStackV3Frame(d document, f *decoders.Frame, event string) {
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
	f.Object = chirpStackV3Object(d)
	f.Position = d.Position("location")
	uplinkID := chirpStackV3Radio(d, f)
	chirpStackV3Event(d, f, event)
	f.Margin, f.Battery = chirpStackV3Status(d, f.Kind)
	if f.Kind == decoders.TxAck && d.IsPresent("gatewayID") {
		f.Gateways = []decoders.Gateway{{ID: eui(d.Value("gatewayID"))}}
	}
	// Take the time of the gateways, or else the server's.
	server := chirpStackV3Time(d)
	earliest := gatewayTime(f.Gateways, server)
	if f.NetworkTime = firstTime(believable(f.Gateways, server, earliest), server); !earliest.IsZero() && !f.NetworkTime.Equal(earliest) {
		disbelieve(f, "rxInfo.time", earliest)
	}
	chirpStackV3Dedup(d, f, uplinkID)
}

// eui gives an EUI in lower-case hex, whichever of the marshalers wrote it.
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

// chirpStackV3Object reads the decoded object, which one of the marshalers puts
// in a string.
func chirpStackV3Object(d document) map[string]any {
	object := d.Object("object")
	switch v := d.Value("objectJSON"); v.Kind {
	case jsonbody.Missing, jsonbody.Null:
		return object
	case jsonbody.Object:
		return d.Object("objectJSON")
	default:
		inner, ok := within(v)
		if !ok {
			d.Warn("objectJSON", "holds no object")
			return object
		}
		return inner
	}
}

// chirpStackV3Status reads the margin, of which 256 is how the old server says
// that it is not known, and the battery. An uplink has them as deviceStatus… only.
func chirpStackV3Status(d document, kind decoders.FrameKind) (margin, battery *float64) {
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

// chirpStackV3Time reads a time that stands beside those of the gateways.
// Milesight's gateways write one that is malformed.
func chirpStackV3Time(d document) time.Time {
	const path = "time|publishedAt"
	v := d.Value(path)
	t, ok := anyTime(v)
	if !ok && isPresent(v) {
		d.notes.untimed(d.at(path), d.field(path), notTime+quoteClipped(v.Raw()))
	}
	return t
}

// chirpStackV3Dedup takes the reception's own identifier, where there is one,
// else the server's time or that of the gateways; without any it is unknown.
func chirpStackV3Dedup(d document, f *decoders.Frame, uplinkID string) {
	count, server := strconv.FormatInt(f.FCnt, 10)+":", string(d.Value("time|publishedAt").Raw())
	switch {
	case uplinkID != "":
		f.DedupID = count + uplinkID + ":" + string(f.Kind)
	case server != "":
		f.DedupID = count + server + ":" + string(f.Kind)
	case counted(f) != "":
		f.DedupID = counted(f) + ":" + string(f.Kind)
	}
}

// chirpStackV3Radio reads how the frame was heard and returns the identifier of
// the first reception that has one.
func chirpStackV3Radio(d document, f *decoders.Frame) (uplinkID string) {
	f.Gateways = d.Gateways("rxInfo", func(d document) decoders.Gateway {
		if uplinkID == "" {
			uplinkID = chirpStackV3UplinkID(d)
		}
		return chirpStackV3Gateway(d)
	})
	fillSNR(f.Gateways)
	return uplinkID
}

// chirpStackV3Gateway reads one entry of rxInfo, in which LoRaServer puts the
// gateway's position beside its name.
func chirpStackV3Gateway(d document) decoders.Gateway {
	g := decoders.Gateway{
		ID:       eui(d.Value("gatewayID|mac")),
		RSSI:     d.Number("rssi"),
		SNR:      d.Number("loRaSNR"),
		Time:     d.Time("time"),
		Position: d.Position("location"),
	}
	if g.Position == nil {
		g.Position = d.Place("latitude", "longitude")
	}
	return g
}

// chirpStackV3UplinkID is a UUID in base64 or hex. Old gateways have none, which
// some servers write as zeros.
func chirpStackV3UplinkID(d document) string {
	v := d.Value("uplinkID")
	id := v.String()
	if b, ok := v.Base64(); ok && len(b) == 16 {
		id = hex.EncodeToString(b)
	}
	if strings.Trim(id, "0-") == "" {
		return ""
	}
	return id
}

// chirpStackV3Event takes the event from the query or else from the keys of the body.
func chirpStackV3Event(d document, f *decoders.Frame, name string) {
	failure, reason := d.Text("type"), d.Text("error")
	integration, kind := d.Text("integrationName"), d.Text("eventType")
	acknowledged := d.Bool("acknowledged")
	switch f.Kind = chirpStackEvent(name); {
	case name == "":
		f.Kind = chirpStackV3Implied(d, f)
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

// chirpStackV3Implied takes the kind of event that the first telling key
// speaks for.
func chirpStackV3Implied(d document, f *decoders.Frame) (kind decoders.FrameKind) {
	if d.IsPresent("fPort") || d.IsPresent("data") {
		return decoders.Uplink
	}
	for key := range d.Keys() {
		if kind = chirpStackV3Hint(key); kind != "" && d.IsPresent(key) {
			return kind
		}
	}
	if f.HasFCnt {
		return decoders.Uplink
	}
	return decoders.Join
}

func chirpStackV3Hint(key string) decoders.FrameKind {
	switch key {
	case "acknowledged":
		return decoders.Ack
	case "margin", "batteryLevel":
		return decoders.Status
	case "error":
		return decoders.Failure
	case "location":
		return decoders.Location
	case "gatewayID":
		return decoders.TxAck
	case "integrationName":
		return decoders.Service
	}
	return ""
}
