package netserver

import (
	"cmp"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// chirpStackV3Frame reads the events of ChirpStack v3's HTTP integration
// (chirpstack-application-server internal/integration/marshaler): the JSON
// marshaler, whose EUIs are base64 and whose decoded object is a string, and
// JSON_V3, whose EUIs are hex. LoRaServer and Milesight's gateways post the
// latter with names of their own for the radio's part.
func chirpStackV3Frame(d document, f *decoders.Frame) {
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
	// Take the decoded object, which one of the marshalers puts in a string.
	f.Object = d.Object("object")
	switch v := d.Value("objectJSON"); v.Kind {
	case jsonbody.Missing, jsonbody.Null:
	case jsonbody.Object:
		f.Object = d.Object("objectJSON")
	default:
		if object, ok := within(v); ok {
			f.Object = object
		} else {
			d.Warn("objectJSON", "holds no object")
		}
	}
	f.Position = d.Position("location")
	uplinkID := chirpStackV3Radio(d, f)
	chirpStackV3Event(d, f)
	f.Margin, f.Battery = chirpStackV3Status(d, f.Kind)
	if f.Kind == decoders.TxAck && d.IsPresent("gatewayID") {
		f.Gateways = []decoders.Gateway{{ID: eui(d.Value("gatewayID"))}}
	}
	// Take the time of the gateways, or else the server's.
	server := d.Time("time|publishedAt") // Milesight's gateways write one that is malformed
	earliest := gatewayTime(f.Gateways, server)
	if f.NetworkTime = cmp.Or(believable(f.Gateways, server, earliest), server); !earliest.IsZero() && !f.NetworkTime.Equal(earliest) {
		disbelieve(f, "rxInfo.time", earliest)
	}
	// Take the reception's own identifier, where there is one, else the server's time or
	// that of the gateways; without any the DedupID is unknown.
	count, serverText := strconv.FormatInt(f.FCnt, 10)+":", string(d.Value("time|publishedAt").Raw())
	switch {
	case uplinkID != "":
		f.DedupID = count + uplinkID + ":" + string(f.Kind)
	case serverText != "":
		f.DedupID = count + serverText + ":" + string(f.Kind)
	case counted(f) != "":
		f.DedupID = counted(f) + ":" + string(f.Kind)
	}
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

// chirpStackV3Status reads the margin, for which the old server sends 256 if it is not known,
// and the battery. An uplink has them as deviceStatus… only.
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

// chirpStackV3Radio reads how the frame was heard and returns the identifier of
// the first reception that has one: a UUID in base64 or hex. Old gateways have none, which
// some servers write as zeros.
func chirpStackV3Radio(d document, f *decoders.Frame) (uplinkID string) {
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
			g.Position = d.Place("latitude", "longitude") // LoRaServer puts it next to the gateway's name
		}
		return g
	})
	fillSNR(f.Gateways)
	return uplinkID
}

// chirpStackV3Event takes the event from the query or else from the keys of the body.
func chirpStackV3Event(d document, f *decoders.Frame) {
	name := d.notes.post.Query.Get("event")
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
		switch key {
		case "acknowledged":
			kind = decoders.Ack
		case "margin", "batteryLevel":
			kind = decoders.Status
		case "error":
			kind = decoders.Failure
		case "location":
			kind = decoders.Location
		case "gatewayID":
			kind = decoders.TxAck
		case "integrationName":
			kind = decoders.Service
		default:
			continue
		}
		if d.IsPresent(key) {
			return kind
		}
	}
	if f.HasFCnt {
		return decoders.Uplink
	}
	return decoders.Join
}
