package netserver

import (
	"bytes"
	"net/url"
	"strconv"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// sigfox reads Sigfox's callbacks (support.sigfox.com, callbacks): the
// customer writes the template, so the same names come as JSON, as a form or
// as a query, mostly all strings. What is no name of Sigfox's is a value of
// the customer's own, of use where the callback carries no data.
type sigfox struct {
	envelope
	hasData  bool
	advanced bool // says more about a frame that DATA has brought
	located  bool // speaks of a position, known or not
	isStatus bool
	isError  bool
	hasAck   bool // SERVICE ACKNOWLEDGE
	acked    bool
	seq      int64
	hasSeq   bool
	lat, lon *float64 // of the station, or of the device beside a radius
	radius   bool
	station  decoders.Gateway
	custom   map[string]any
	device   string
	rank     int
}

func parseSigfox(p Post) ([]decoders.Frame, error) {
	s := sigfox{envelope: newEnvelope(Sigfox, sigfoxBody(p))}
	var key []byte
	for ok := s.r.Object(); ok && s.r.Next(&key); {
		s.field(key)
	}
	s.complete()
	return s.finish()
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

func (s *sigfox) field(key []byte) {
	f := s.f
	switch string(key) {
	case "device", "deviceId", "id":
		s.identify(key)
	case "time":
		f.NetworkTime = s.instant("time")
	case "data":
		f.Payload = s.hex("data")
		s.hasData = true
	case "seqNumber":
		s.seq, s.hasSeq = s.integer("seqNumber", 1<<53)
	case "deviceTypeId":
		f.Profile.ID = s.text("deviceTypeId")
	case "rssi":
		s.station.RSSI = s.number("rssi")
	case "snr":
		s.station.SNR = s.number("snr")
	case "station":
		s.station.ID = s.text("station")
	case "lat":
		s.lat = s.coordinate()
	case "lng":
		s.lon = s.coordinate()
	case "radius":
		s.radius = given(s.r.Value())
	case "duplicate":
		s.advanced = s.flag() || s.advanced
	default:
		s.serviceField(key)
	}
}

// serviceField reads what callbacks other than DATA bring.
func (s *sigfox) serviceField(key []byte) {
	switch string(key) {
	case "computedLocation":
		s.located, s.advanced = true, true
		s.computed()
	case "duplicates":
		s.advanced = true
		s.duplicates()
	case "lqi", "linkQuality":
		s.r.Skip()
		s.advanced = true
	case "batt", "temp":
		s.isStatus = true
		s.keep(key)
	case "severity", "info", "infoMessage", "infoCode":
		s.isError = true
		s.keep(key)
	case "downlinkAck":
		s.hasAck, s.acked = true, s.flag()
	case "ack", "longPolling", "avgSnr", "operatorName", "countryCode", "deviceTypeName", "fixedLat", "fixedLng",
		"batch", "decoder_id", "token", "event":
		s.r.Skip()
	default:
		s.keep(key)
	}
}

// identify prefers device, then deviceId.
func (s *sigfox) identify(key []byte) {
	rank := 1
	switch string(key) {
	case "device":
		rank = 3
	case "deviceId":
		rank = 2
	}
	if id := s.text(string(key)); id != "" && rank > s.rank {
		s.device, s.rank = id, rank
	}
}

// keep takes a value of the customer's own.
func (s *sigfox) keep(key []byte) {
	const most = 200
	if len(s.custom) >= most {
		s.r.Skip()
		return
	}
	if s.custom == nil {
		s.custom = make(map[string]any)
	}
	name := string(key)
	if s.r.Kind() == jsonbody.String {
		s.custom[name] = loosely(s.r.Value().String())
		return
	}
	s.custom[name] = s.r.Any()
}

func (s *sigfox) complete() {
	f := s.f
	f.Identifier = s.device
	s.named("device")
	s.placed()
	s.event()
	if len(f.Gateways) == 0 && (s.station.ID != "" || s.station.RSSI != nil) {
		f.Gateways = []decoders.Gateway{s.station}
	}
	if s.hasSeq && !f.NetworkTime.IsZero() {
		f.DedupID = strconv.FormatInt(f.NetworkTime.Unix(), 10) + ":" + strconv.FormatInt(s.seq, 10)
	}
}

// placed gives lat and lng to whom they belong: beside a radius they are the
// device's, else the station's, rounded.
func (s *sigfox) placed() {
	at := place(s.lat, s.lon, nil)
	if s.radius && !s.located {
		s.located, s.advanced = true, true
		s.f.Position = at
		return
	}
	s.station.Position = at
}

// event goes by what the callback carries: none of them names itself. A
// position without data is kept apart from the frame's own kind, so that it
// cannot be taken for the frame when it comes first.
func (s *sigfox) event() {
	f := s.f
	switch {
	case s.hasData:
		f.Kind, f.Supplement, f.Extensible = decoders.Uplink, s.advanced, !s.advanced
	case s.located:
		f.Kind, f.Supplement = decoders.Location, true
	case s.hasAck:
		f.Kind = decoders.Nack
		if s.acked {
			f.Kind = decoders.Ack
		}
	case s.isError:
		f.Kind, f.Text = decoders.Failure, text(s.custom, "severity", "infoCode", "info", "infoMessage")
	case s.isStatus:
		f.Kind, f.Text, f.Object = decoders.Status, text(s.custom, "batt", "temp"), s.custom
	case s.advanced:
		f.Kind, f.Supplement = decoders.Service, true
	case s.custom != nil:
		f.Kind, f.Object = decoders.Uplink, s.custom
	default:
		f.Kind = decoders.Service
	}
}
