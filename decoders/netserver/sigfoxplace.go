package netserver

import (
	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// computed reads the position that the network worked out, an object or, in a
// form, its text. Status 0 says that there is none.
func (s *sigfox) computed() {
	if s.r.Kind() != jsonbody.String {
		s.f.Position = s.solution()
		return
	}
	inner := envelope{r: jsonbody.New([]byte(s.r.Value().String())), f: s.f}
	s.f.Position = inner.solution()
}

func (e *envelope) solution() *decoders.Position {
	var key []byte
	var lat, lon *float64
	known := true
	for ok := e.r.Object(); ok && e.r.Next(&key); {
		switch string(key) {
		case "lat":
			lat = e.coordinate()
		case "lng":
			lon = e.coordinate()
		case "status":
			known = e.flag()
		default:
			e.r.Skip()
		}
	}
	if !known {
		return nil
	}
	return place(lat, lon, nil)
}

// duplicates lists every station that heard the frame.
func (s *sigfox) duplicates() {
	if s.r.Kind() != jsonbody.String {
		s.gateways(s.duplicate)
		return
	}
	outer := s.r
	s.r = jsonbody.New([]byte(outer.Value().String()))
	s.gateways(s.duplicate)
	s.r = outer
}

func (s *sigfox) duplicate() (g decoders.Gateway) {
	var key []byte
	for ok := s.r.Object(); ok && s.r.Next(&key); {
		switch string(key) {
		case "bsId":
			g.ID = s.text("duplicates.bsId")
		case "rssi":
			g.RSSI = s.number("duplicates.rssi")
		case "snr":
			g.SNR = s.number("duplicates.snr")
		default:
			s.r.Skip()
		}
	}
	return g
}
