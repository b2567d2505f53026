package netserver

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
)

// thingPark reads the documents of Actility's ThingPark (LRC-AS tunnel
// interface), in JSON, in JSON whose values are all strings, and in XML, and
// the forms that KPN (without a wrapper) and Swisscom (under data and
// uplinkMetrics) make of them. A payload beside AppSKey or PayloadEncryption
// is ciphertext. The downlinkUrl is a credential and is never kept.
type thingPark struct {
	envelope
	document string // the wrapper's key; empty for the forms without one
	rawTime  string
	mic      string
	payload  bool
	rawJoin  bool
	mType    int64
	best     decoders.Gateway // the reception that the document itself names
	lat, lon *float64         // where that gateway stands
	points   map[string]any

	notice       string // of a notification
	var1, var2   *float64
	delivered    string // of a downlink
	causes       []string
	fCntDown     int64
	devLat       *float64
	devLon       *float64
	devAlt       *float64
	baseStation  string
	alarmDetails string
}

func parseThingPark(p Post) ([]decoders.Frame, error) {
	body, err := thingParkJSON(p.Body)
	if err != nil {
		return nil, err
	}
	t := thingPark{envelope: newEnvelope(ThingPark, body), mType: -1}
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		switch {
		case bytes.HasPrefix(key, []byte("DevEUI_")), string(key) == "BS_alarm":
			t.document = string(key)
			t.fields()
		case string(key) == "data", string(key) == "uplinkMetrics":
			t.fields()
		default:
			t.field(key)
		}
	}
	t.complete()
	return t.finish()
}

func (t *thingPark) fields() {
	var key []byte
	for ok := t.r.Object(); ok && t.r.Next(&key); {
		t.field(key)
	}
}

func (t *thingPark) field(key []byte) {
	f := t.f
	switch string(key) {
	case "DevEUI":
		t.device("DevEUI")
	case "Time", "DevLocTime":
		t.time(string(key))
	case "CustomerID":
		f.Application = t.text("CustomerID")
	case "CustomerData":
		t.customerData()
	case "DriverCfg":
		t.driver()
	case "FPort":
		n, ok := t.integer("FPort", 255)
		f.FPort, f.HasFPort = int(n), ok
	case "FCntUp":
		f.FCnt, f.HasFCnt = t.integer("FCntUp", 1<<32-1)
	case "MType":
		if n, ok := t.integer("MType", 7); ok {
			t.mType = n
		}
	case "payload_hex":
		f.Payload = t.hex("payload_hex")
		t.payload = true
	case "mic_hex":
		t.mic = t.text("mic_hex")
	case "AppSKey", "PayloadEncryption":
		f.Encrypted = given(t.r.Value()) || f.Encrypted
	case "rawJoinRequest":
		t.rawJoin = given(t.r.Value())
	case "payload":
		t.driverOutput()
	case "points":
		t.readPoints()
	default:
		t.radio(key)
	}
}

// time reads the document's time; KPN's form has a count since 1970.
func (t *thingPark) time(field string) {
	again := t.r
	t.rawTime = string(again.Value().Raw())
	if at := t.instant(field); !at.IsZero() {
		t.f.NetworkTime = at
	}
}

// complete names the device and the event once all keys were seen.
func (t *thingPark) complete() {
	f := t.f
	if t.document == "BS_alarm" && f.Identifier == "" {
		f.Identifier = t.baseStation
	}
	t.named("DevEUI")
	f.Position = place(t.devLat, t.devLon, t.devAlt)
	t.heard()
	if f.Object == nil {
		f.Object = t.points
	}
	switch t.document {
	case "", "DevEUI_uplink":
		t.uplink()
	case "DevEUI_notification":
		t.notification()
	case "DevEUI_location":
		f.Kind = decoders.Location
	case "DevEUI_downlink_Sent":
		t.downlink()
	case "DevEUI_multicast_summary":
		f.Kind, f.Text = decoders.Downlink, "multicast summary"
	case "DevEUI_alarm", "BS_alarm":
		f.Kind, f.Text = decoders.Alert, said(t.document, t.alarmDetails)
	default:
		f.Kind, f.Text = decoders.Service, t.document
	}
	t.dedup()
}

// uplink distinguishes a join request, which has the same wrapper, from a frame.
func (t *thingPark) uplink() {
	const joinRequest, confirmedUp = 0, 4
	f := t.f
	f.Kind = decoders.Uplink
	if !t.payload && (t.rawJoin || t.mType == joinRequest) {
		f.Kind = decoders.Join
		return
	}
	f.Confirmed = t.mType == confirmedUp
}

func (t *thingPark) notification() {
	f := t.f
	switch strings.ToLower(t.notice) {
	case "join":
		f.Kind = decoders.Join
	case "devstatusans":
		f.Kind, f.Margin = decoders.Status, t.var2
		f.Battery = loraPercent(t.var1)
	default:
		f.Kind, f.Text = decoders.Log, "notification "+t.notice
	}
}

func (t *thingPark) downlink() {
	f := t.f
	f.Kind, f.Text = decoders.Downlink, "sent"
	if t.delivered == "0" {
		f.Kind, f.Text = decoders.Failure, "downlink not sent: "+strings.Join(t.causes, ", ")
	}
	f.FCnt, f.HasFCnt = 0, false // of the uplink before
}

// dedup sets the DedupID from the counter and the time, which a post that is repeated or
// that comes late has unchanged.
func (t *thingPark) dedup() {
	f := t.f
	if t.rawTime == "" && t.mic == "" {
		return
	}
	n := f.FCnt
	if f.Kind == decoders.Downlink || f.Kind == decoders.Failure {
		n = t.fCntDown
	}
	if t.rawTime == "" {
		f.DedupSpan = repeatSpan
	}
	f.DedupID = strings.Join([]string{strconv.FormatInt(n, 10), t.rawTime, t.mic, t.document, t.notice}, ":")
}
