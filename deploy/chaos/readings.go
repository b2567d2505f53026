package main

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// devicesEach is the number of devices of each kind of readings. The times of readings are in
// the past; consecutive readings of a device are a second apart.
const devicesEach = 40

// readingKinds returns the kinds whose items are readings, with the format of their devices'
// identifiers.
func readingKinds() map[string]string {
	return map[string]string{
		chirpStackKind: "70b3d57e01%06x", thingsStackKind: "70b3d57e02%06x",
		genericKind: "generic-%d", probeKind: "probe-%d", newDeviceKind: "new-%d",
	}
}

// reading is the n-th reading of a kind. Its value is n, which determines its device and its
// time.
type reading struct {
	kind      string
	n         int
	device    string
	sampledAt time.Time
}

func (s *site) reading(kind string, n int) reading {
	return reading{kind, n, fmt.Sprintf(readingKinds()[kind], n%devicesEach), s.base.Add(time.Duration(n/devicesEach) * time.Second)}
}

// id returns the id of the reading in the ledger.
func (r reading) id() string {
	return readingID(r.device, r.sampledAt.Format(time.DateTime), float64(r.n))
}

func readingID(device, timestamp string, value float64) string {
	return device + " at " + timestamp + " = " + strconv.FormatFloat(value, 'f', -1, 64)
}

// postReading records a reading in the ledger and posts body as post does.
func (s *site) postReading(ctx context.Context, r reading, path, body string) {
	s.ledger.offer(r.kind, r.id())
	s.post(ctx, r.kind, r.id(), path, body)
}

// cayenne64 returns a Cayenne LPP payload with n as its generic value, in Base64.
func cayenne64(n int) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32([]byte{1, 100}, uint32(n)))
}

func (s *site) sendChirpStack(ctx context.Context, n int) {
	r := s.reading(chirpStackKind, n)
	body := fmt.Sprintf(`{"deduplicationId":"3ac7e3c4-4401-4b8d-9386-%012d","time":%q,"deviceInfo":{"tenantId":"52f14cd4-c6f1-4fbd-8f87-4025e1d49242",`+
		`"applicationId":"17c82e96-be03-4f38-aef3-f83d48582d97","deviceName":"Probe","devEui":%q},"devAddr":"00189440","adr":true,"dr":1,"fCnt":%d,`+
		`"fPort":1,"confirmed":false,"data":%q,"rxInfo":[{"gatewayId":"0016c001f153a14c","uplinkId":4217106255,"rssi":-36,"snr":10.5}],`+
		`"txInfo":{"frequency":867100000}}`, n, r.sampledAt.Format(time.RFC3339), r.device, n/devicesEach, cayenne64(n))
	s.postReading(ctx, r, "/webhooks/lorawan?event=up&decoder_id=counter", body)
}

func (s *site) sendThingsStack(ctx context.Context, n int) {
	r := s.reading(thingsStackKind, n)
	body := fmt.Sprintf(`{"end_device_ids":{"device_id":"probe-%d","application_ids":{"application_id":"works"},"dev_eui":%q},`+
		`"received_at":%[3]q,"uplink_message":{"session_key_id":"AY3a1w==","f_port":2,"f_cnt":%[4]d,"frm_payload":%[5]q,`+
		`"rx_metadata":[{"gateway_ids":{"gateway_id":"roof"},"rssi":-88,"snr":9.5}],"received_at":%[3]q}}`,
		n%devicesEach, r.device, r.sampledAt.Format(time.RFC3339), n/devicesEach+1, cayenne64(n))
	s.postReading(ctx, r, "/webhooks/community?decoder_id=counter", body)
}

// genericPath is the webhook of readings that the sender has decoded.
const genericPath = "/webhooks/generic?decoder_id=sent"

func (r reading) genericBody() string {
	return fmt.Sprintf(`{"deviceId":%q,"count":%d,"time":%q}`, r.device, r.n, r.sampledAt.Format(time.RFC3339))
}

func (s *site) sendGeneric(ctx context.Context, n int) {
	r := s.reading(genericKind, n)
	s.postReading(ctx, r, genericPath, r.genericBody())
}

// createToken creates the token of the ledger that sendClaim claims.
func (s *site) createToken(ctx context.Context) error {
	var job string
	if err := s.read(s.call(ctx, http.MethodPost, "/ledgers/assets/tokens", `{}`), &job); err != nil {
		return err
	}
	return s.await(ctx, "the token of the ledger", func() (bool, error) {
		var result struct{ Data struct{ Token string } }
		err := s.get(ctx, "/ledgers/jobs/"+job, &result)
		s.ledgerToken = result.Data.Token
		return s.ledgerToken != "", err
	})
}

// findReadings records the stored readings of every device.
func (s *site) findReadings(ctx context.Context, f findings) error {
	for kind := range readingKinds() {
		for n := range devicesEach {
			if err := s.findDevice(ctx, f, kind, s.reading(kind, n).device); err != nil {
				return err
			}
		}
	}
	return nil
}

// windowSeconds is the length of the time range in a request for readings.
const windowSeconds = 900

// findDevice records the stored readings of a device. It ends at the first window without readings.
func (s *site) findDevice(ctx context.Context, f findings, kind, device string) error {
	var known struct{ ID string }
	a := s.call(ctx, http.MethodGet, "/iot/devices/identifier/"+device, "")
	if a.notFound() {
		return nil
	}
	if err := s.read(a, &known); err != nil {
		return err
	}
	for start := s.base; ; start = start.Add(windowSeconds * time.Second) {
		end := start.Add((windowSeconds - 1) * time.Second)
		q := url.Values{"limit": {"1000"}, "startDate": {start.Format(time.DateTime)}, "endDate": {end.Format(time.DateTime)}}
		var list struct {
			Data []struct {
				ReadingDate string `json:"reading_date"`
				Value       float64
			}
		}
		if err := s.get(ctx, "/iot/devices/"+known.ID+"/readings?"+q.Encode(), &list); err != nil || len(list.Data) == 0 {
			return err
		}
		for _, r := range list.Data {
			f.seeOnce(kind, readingID(device, r.ReadingDate, r.Value))
		}
	}
}
