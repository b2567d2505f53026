package main

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// devicesEach is how many devices send what a kind of readings sends; each has a
// reading a second of the past.
const devicesEach = 20

// readingKinds are those whose items are readings, with the identifiers of their
// devices.
func readingKinds() map[string]func(n int) string {
	return map[string]func(n int) string{
		ofChirpStack: func(n int) string { return fmt.Sprintf("70b3d57e01%06x", n%devicesEach) },
		ofThings:     func(n int) string { return fmt.Sprintf("70b3d57e02%06x", n%devicesEach) },
		ofLORIOT:     func(n int) string { return fmt.Sprintf("70b3d57e03%06x", n%devicesEach) },
		ofGeneric:    func(n int) string { return fmt.Sprintf("generic-%d", n%devicesEach) },
		ofReadings:   func(n int) string { return fmt.Sprintf("rest-%d", n%devicesEach) },
	}
}

// reading offers the n-th reading of a kind, and returns its device, its time and
// its id in the ledger.
func (s *site) reading(kind string, n int) (device string, at time.Time, id string) {
	device, at = readingKinds()[kind](n), s.base.Add(time.Duration(n/devicesEach)*time.Second)
	id = readingID(device, at.Format(time.DateTime), float64(n))
	s.ledger.offer(kind, id)
	return device, at, id
}

func readingID(device, at string, value float64) string {
	return fmt.Sprintf("%s at %s = %v", device, at, value)
}

// post sends a reading until it is acknowledged.
func (s *site) post(ctx context.Context, kind, id, path, body string) {
	if a, _ := s.repeat(ctx, kind, http.MethodPost, path, body); a.done() {
		s.ledger.ack(kind, id, "")
	}
}

// cayenne is a payload of Cayenne LPP whose generic value is n.
func cayenne(n int) []byte { return binary.BigEndian.AppendUint32([]byte{1, 100}, uint32(n)) }

func cayenne64(n int) string { return base64.StdEncoding.EncodeToString(cayenne(n)) }

func (s *site) sendChirpStack(ctx context.Context, n int) {
	device, at, id := s.reading(ofChirpStack, n)
	body := fmt.Sprintf(`{"deduplicationId":"3ac7e3c4-4401-4b8d-9386-%012d","time":%q,"deviceInfo":{"tenantId":"52f14cd4-c6f1-4fbd-8f87-4025e1d49242",`+
		`"applicationId":"17c82e96-be03-4f38-aef3-f83d48582d97","deviceName":"Probe","devEui":%q},"devAddr":"00189440","adr":true,"dr":1,"fCnt":%d,`+
		`"fPort":1,"confirmed":false,"data":%q,"rxInfo":[{"gatewayId":"0016c001f153a14c","uplinkId":4217106255,"rssi":-36,"snr":10.5}],`+
		`"txInfo":{"frequency":867100000}}`, n, at.Format(time.RFC3339), device, n/devicesEach, cayenne64(n))
	s.post(ctx, ofChirpStack, id, "/webhooks/lorawan?event=up&decoder_id=counter", body)
}

func (s *site) sendThings(ctx context.Context, n int) {
	device, at, id := s.reading(ofThings, n)
	stamp := at.Format(time.RFC3339)
	body := fmt.Sprintf(`{"end_device_ids":{"device_id":"probe-%d","application_ids":{"application_id":"works"},"dev_eui":%q},`+
		`"received_at":%q,"uplink_message":{"session_key_id":"AY3a1w==","f_port":2,"f_cnt":%d,"frm_payload":%q,`+
		`"rx_metadata":[{"gateway_ids":{"gateway_id":"roof"},"rssi":-88,"snr":9.5}],"received_at":%q}}`,
		n%devicesEach, device, stamp, n/devicesEach+1, cayenne64(n), stamp)
	s.post(ctx, ofThings, id, "/webhooks/community?decoder_id=counter", body)
}

func (s *site) sendLORIOT(ctx context.Context, n int) {
	device, at, id := s.reading(ofLORIOT, n)
	body := fmt.Sprintf(`{"cmd":"rx","seqno":%d,"EUI":%q,"ts":%d,"fcnt":%d,"port":2,"freq":867500000,"rssi":-91,"snr":8.5,"toa":206,`+
		`"dr":"SF9 BW125 4/5","ack":false,"bat":127,"offline":false,"data":"%X"}`, n, device, at.UnixMilli(), n/devicesEach, cayenne(n))
	s.post(ctx, ofLORIOT, id, "/webhooks/lorawan?decoder_id=counter", body)
}

func (s *site) sendGeneric(ctx context.Context, n int) {
	device, at, id := s.reading(ofGeneric, n)
	s.post(ctx, ofGeneric, id, "/webhooks/generic?decoder_id=sent", fmt.Sprintf(`{"deviceId":%q,"count":%d,"time":%q}`, device, n, at.Format(time.RFC3339)))
}

func (s *site) sendReading(ctx context.Context, n int) {
	_, at, id := s.reading(ofReadings, n)
	s.post(ctx, ofReadings, id, "/iot/devices/"+s.devices[n%devicesEach]+"/readings",
		fmt.Sprintf(`{"reading":{"values":{"count":%d},"time":%q}}`, n, at.Format(time.DateTime)))
}

// prepare makes the devices that readings over REST are for, and the token that is
// claimed.
func (s *site) prepare(ctx context.Context) error {
	for n := range devicesEach {
		var made struct{ Data struct{ ID string } }
		body := fmt.Sprintf(`{"location_id":"yard","decoder_id":"sent","identifier":%q,"name":"Made"}`, readingKinds()[ofReadings](n))
		if err := s.read(s.call(ctx, http.MethodPost, "/iot/devices/other", body), &made); err != nil {
			return err
		}
		s.devices = append(s.devices, made.Data.ID)
	}
	var job string
	if err := s.read(s.call(ctx, http.MethodPost, "/ledgers/assets/tokens", `{}`), &job); err != nil {
		return err
	}
	return s.await(ctx, "the token of the ledger", func() (bool, error) {
		var made struct{ Data struct{ Token string } }
		err := s.load(ctx, "/ledgers/jobs/"+job, &made)
		s.claims = made.Data.Token
		return s.claims != "", err
	})
}

// findReadings looks for the readings of every device.
func (s *site) findReadings(ctx context.Context, f findings) error {
	for kind, device := range readingKinds() {
		seconds := (len(s.ledger.of(kind))+devicesEach-1)/devicesEach + 1
		for n := range devicesEach {
			if err := s.findDevice(ctx, f, kind, device(n), seconds); err != nil {
				return err
			}
		}
	}
	return nil
}

// readingsAtOnce is how many seconds are asked for at once.
const readingsAtOnce = 900

func (s *site) findDevice(ctx context.Context, f findings, kind, device string, seconds int) error {
	var found struct{ ID string }
	a := s.call(ctx, http.MethodGet, "/iot/devices/identifier/"+device, "")
	if a.status == http.StatusNotFound || a.status == http.StatusUnprocessableEntity {
		return nil
	}
	if err := s.read(a, &found); err != nil {
		return err
	}
	for at := 0; at < seconds; at += readingsAtOnce {
		from := s.base.Add(time.Duration(at) * time.Second)
		q := url.Values{"limit": {"1000"}, "startDate": {from.Format(time.DateTime)}, "endDate": {from.Add((readingsAtOnce - 1) * time.Second).Format(time.DateTime)}}
		var list struct {
			Data []struct {
				ReadingDate string `json:"reading_date"`
				Value       json.Number
			}
		}
		if err := s.load(ctx, "/iot/devices/"+found.ID+"/readings?"+q.Encode(), &list); err != nil {
			return err
		}
		for _, r := range list.Data {
			value, _ := r.Value.Float64()
			f.see(kind, readingID(device, r.ReadingDate, value), 1, "")
		}
	}
	return nil
}
