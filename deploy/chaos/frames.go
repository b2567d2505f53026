package main

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"time"
)

// reading offers the n-th reading of a kind, and returns its device and its time.
func (s *site) reading(kind string, n int) (device string, at time.Time) {
	r := s.ledger.readings[kind]
	r.mark(n, offered)
	return r.device(n), r.at(n)
}

// postReading sends a reading until it is acknowledged.
func (s *site) postReading(ctx context.Context, kind string, n int, path, body string) {
	if a, _ := s.repeat(ctx, kind, http.MethodPost, path, body); a.done() {
		s.ledger.readings[kind].mark(n, acked)
	}
}

// post sends something until it is acknowledged.
func (s *site) post(ctx context.Context, kind, id, path, body string) {
	if a, _ := s.repeat(ctx, kind, http.MethodPost, path, body); a.done() {
		s.ledger.ack(kind, id, "")
	}
}

// cayenne is a payload of Cayenne LPP whose generic value is n.
func cayenne(n int) []byte { return binary.BigEndian.AppendUint32([]byte{1, 100}, uint32(n)) }

func cayenne64(n int) string { return base64.StdEncoding.EncodeToString(cayenne(n)) }

func (s *site) sendChirpStack(ctx context.Context, n int) {
	device, at := s.reading(ofChirpStack, n)
	body := fmt.Sprintf(`{"deduplicationId":"3ac7e3c4-4401-4b8d-9386-%012d","time":%q,"deviceInfo":{"tenantId":"52f14cd4-c6f1-4fbd-8f87-4025e1d49242",`+
		`"applicationId":"17c82e96-be03-4f38-aef3-f83d48582d97","deviceName":"Probe","devEui":%q},"devAddr":"00189440","adr":true,"dr":1,"fCnt":%d,`+
		`"fPort":1,"confirmed":false,"data":%q,"rxInfo":[{"gatewayId":"0016c001f153a14c","uplinkId":4217106255,"rssi":-36,"snr":10.5}],`+
		`"txInfo":{"frequency":867100000}}`, n, at.Format(time.RFC3339), device, n/devicesEach, cayenne64(n))
	s.postReading(ctx, ofChirpStack, n, "/webhooks/lorawan?event=up&decoder_id=counter", body)
}

func (s *site) sendThings(ctx context.Context, n int) {
	device, at := s.reading(ofThings, n)
	stamp := at.Format(time.RFC3339)
	body := fmt.Sprintf(`{"end_device_ids":{"device_id":"probe-%d","application_ids":{"application_id":"works"},"dev_eui":%q},`+
		`"received_at":%q,"uplink_message":{"session_key_id":"AY3a1w==","f_port":2,"f_cnt":%d,"frm_payload":%q,`+
		`"rx_metadata":[{"gateway_ids":{"gateway_id":"roof"},"rssi":-88,"snr":9.5}],"received_at":%q}}`,
		n%devicesEach, device, stamp, n/devicesEach+1, cayenne64(n), stamp)
	s.postReading(ctx, ofThings, n, "/webhooks/community?decoder_id=counter", body)
}

func (s *site) sendLORIOT(ctx context.Context, n int) {
	device, at := s.reading(ofLORIOT, n)
	body := fmt.Sprintf(`{"cmd":"rx","seqno":%d,"EUI":%q,"ts":%d,"fcnt":%d,"port":2,"freq":867500000,"rssi":-91,"snr":8.5,"toa":206,`+
		`"dr":"SF9 BW125 4/5","ack":false,"bat":127,"offline":false,"data":"%X"}`, n, device, at.UnixMilli(), n/devicesEach, cayenne(n))
	s.postReading(ctx, ofLORIOT, n, "/webhooks/lorawan?decoder_id=counter", body)
}

func (s *site) sendGeneric(ctx context.Context, n int) {
	device, at := s.reading(ofGeneric, n)
	s.postReading(ctx, ofGeneric, n, "/webhooks/generic?decoder_id=sent", fmt.Sprintf(`{"deviceId":%q,"count":%d,"time":%q}`, device, n, at.Format(time.RFC3339)))
}

func (s *site) sendReading(ctx context.Context, n int) {
	_, at := s.reading(ofReadings, n)
	s.postReading(ctx, ofReadings, n, "/iot/devices/"+s.devices[n%devicesEach]+"/readings",
		fmt.Sprintf(`{"reading":{"values":{"count":%d},"time":%q}}`, n, at.Format(time.DateTime)))
}

// prepare makes the devices that readings over REST are for, and the token that is
// claimed.
func (s *site) prepare(ctx context.Context) error {
	for n := range devicesEach {
		var made struct{ Data struct{ ID string } }
		body := fmt.Sprintf(`{"location_id":"yard","decoder_id":"sent","identifier":%q,"name":"Made"}`, s.ledger.readings[ofReadings].device(n))
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
