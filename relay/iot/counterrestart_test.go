package iot_test

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// After a restart, an ABP device counts frames from 0 in the same session. A frame repeats another
// one if their counters and payloads are equal and their times are close.
func TestFramesAreStoredAfterTheirCounterRestarts(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rfc3339 := func(sentAt time.Time) string { return sentAt.Format(time.RFC3339Nano) }
	for sender, body := range map[string]func(sentAt time.Time, count int) string{
		"The Things Stack": func(sentAt time.Time, count int) string {
			return fmt.Sprintf(`{"end_device_ids":{"device_id":"probe","dev_eui":"24E124136B502217","application_ids":{"application_id":"a"}},"received_at":%q,`+
				`"uplink_message":{"session_key_id":"AYfg","f_port":2,"f_cnt":%d,"frm_payload":"FQ==","received_at":%q}}`, rfc3339(sentAt), count, rfc3339(sentAt))
		},
		"Everynet": func(sentAt time.Time, count int) string {
			return fmt.Sprintf(`{"type":"uplink","meta":{"device":"24e124136b502217","packet_hash":"ab%d","gateway":"g1"},"params":{"rx_time":%d,`+
				`"port":2,"counter_up":%d,"payload":"FQ==","duplicate":false,"radio":{"hardware":{"rssi":-90,"snr":4}}}}`, count, sentAt.Unix(), count)
		},
		"LORIOT": func(sentAt time.Time, count int) string {
			return fmt.Sprintf(`{"cmd":"rx","seqno":%d,"EUI":"24E124136B502217","ts":%d,"fcnt":%d,"port":2,"rssi":-97,"snr":5,"data":"15"}`, count, sentAt.UnixMilli(), count)
		},
		"ThingPark without a time": func(_ time.Time, count int) string {
			return fmt.Sprintf(`{"DevEUI_uplink":{"DevEUI":"24E124136B502217","FPort":2,"FCntUp":%d,"payload_hex":"15","mic_hex":"0a%02d"}}`, count, count)
		},
		"UbiBot without a time": func(_ time.Time, count int) string {
			return fmt.Sprintf(`{"channel_id":"24e124136b502217","feeds":[{"field1":%d}]}`, count)
		},
	} {
		t.Run(sender, func(t *testing.T) {
			g := newGateway(t)
			d := decoder("raw", "temperature", "field1")
			d.Codec, d.Source = "expr", "temperature = bytes[0]"
			relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 1, d))
			preview := g.NewPreview()
			stored := 0
			for i, step := range []struct {
				sinceNoon time.Duration // time of the post
				count     int
				repeats   string
			}{
				{0, 0, ""}, {0, 0, "n1-u0"}, {20 * time.Second, 0, "n1-u0"}, {5 * time.Minute, 1, ""},
				{10 * time.Minute, 0, ""}, {10 * time.Minute, 0, "n1-u4"}, {15 * time.Minute, 1, ""}, {16*time.Minute + time.Second, 1, ""},
			} {
				g.now = noon.Add(step.sinceNoon)
				frames, err := netserver.Parse(netserver.Post{Body: []byte(body(g.now, step.count)), Query: url.Values{}, ReceivedAt: g.now})
				relaytest.NoError(t, err)
				a := iot.Arrival{RecordID: fmt.Sprint("n1-u", i), Account: 1, DecoderID: "raw", ReceivedAt: g.now, Frame: frames[0]}
				previewed, err := preview.Frames(t.Context(), []iot.Arrival{a})
				relaytest.NoError(t, err)
				outcome := g.mustStore(a)[0]
				if outcome.Repeats != step.repeats || outcome.Duplicate != (step.repeats != "") {
					t.Errorf("post %d repeats %q, want %q", i, outcome.Repeats, step.repeats)
				}
				if previewed[0].Repeats != step.repeats {
					t.Errorf("the preview of post %d repeats %q, want %q", i, previewed[0].Repeats, step.repeats)
				}
				if step.repeats == "" {
					stored++
				}
			}
			if got := g.history(1); len(got) != stored {
				t.Errorf("%d readings stored, want %d: %q", len(got), stored, got)
			}
		})
	}
}

// The counter restarts with another payload.
func TestAFrameWithAnotherPayloadIsNoDuplicate(t *testing.T) {
	g := newGateway(t)
	for i, payload := range [][]byte{{1}, {2}, {1}} {
		body := fmt.Sprintf(`{"end_device_ids":{"dev_eui":"24E124136B502217"},"uplink_message":{"session_key_id":"AYfg","f_port":2,"frm_payload":%q,"received_at":"2026-03-01T11:59:0%dZ"}}`,
			map[string]string{"01": "AQ==", "02": "Ag=="}[hex.EncodeToString(payload)], i)
		frames, err := netserver.Parse(netserver.Post{Body: []byte(body), ReceivedAt: g.now})
		relaytest.NoError(t, err)
		frames[0].Object = values("temperature", float64(payload[0]))
		outcomes := g.mustStore(iot.Arrival{RecordID: fmt.Sprint("n1-u", i), Account: 1, DecoderID: "d1", ReceivedAt: g.now, Frame: frames[0]})
		if want := i == 2; outcomes[0].Duplicate != want {
			t.Errorf("frame %d: duplicate = %t, want %t", i, outcomes[0].Duplicate, want)
		}
	}
}

// Receptions of a frame are not merged with those of another frame with the same counter.
func TestPostsAreNotMergedAfterTheCounterRestarts(t *testing.T) {
	g := newGateway(t)
	for i, post := range []struct {
		rxTime    string
		gateway   string
		duplicate bool
	}{{"1772366400.0", "A1", false}, {"1772366401.0", "A2", true}, {"1772366100.0", "B1", false}} {
		body := fmt.Sprintf(`{"type":"uplink","meta":{"device":"24e124136b502217","packet_hash":"ab","gateway":%q},"params":{"rx_time":%s,`+
			`"port":0,"counter_up":21,"duplicate":%v,"radio":{"hardware":{"rssi":-90,"snr":4}}}}`, post.gateway, post.rxTime, post.duplicate)
		frames, err := netserver.Parse(netserver.Post{Body: []byte(body), ReceivedAt: g.now})
		relaytest.NoError(t, err)
		g.mustStore(iot.Arrival{RecordID: fmt.Sprint("n1-u", i), Account: 1, DecoderID: "d1", ReceivedAt: g.now, Frame: frames[0]})
	}
	const want = "11:55:00 f_cnt=21, 11:55:00 f_port=0, 11:55:00 gateways=1, 11:55:00 rssi=-90, 11:55:00 snr=4, " +
		"12:00:00 f_cnt=21, 12:00:00 f_port=0, 12:00:00 gateways=2, 12:00:00 rssi=-90, 12:00:00 snr=4"
	if got := g.radio(); got != want {
		t.Errorf("radio data %s\nwant       %s", got, want)
	}
}
