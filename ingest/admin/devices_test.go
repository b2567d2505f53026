package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/cache/cachetest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

// fixedReadings is a reading store with the data of a test.
type fixedReadings struct {
	iot.ReadingStore
	stored  map[string]time.Time // time of the last reading by device
	uplinks map[string]iot.RadioData
	err     error // returned by all methods
}

func (s *fixedReadings) LastStored(_ context.Context, _ relay.AccountID, ids []string) (map[string]time.Time, error) {
	lastStored := map[string]time.Time{}
	for _, id := range ids {
		if t, ok := s.stored[id]; ok {
			lastStored[id] = t
		}
	}
	return lastStored, s.err
}

func (s *fixedReadings) Radio(context.Context, relay.AccountID, []string, time.Time) (map[string]iot.RadioData, error) {
	return s.uplinks, s.err
}

func (s *fixedReadings) Latest(context.Context, relay.AccountID, string, []string) ([]iot.Point, error) {
	return nil, s.err
}

// newOperatorAPIWithDevices returns an API with the devices a1, a2 and a3 of account 1, and b1 of
// account 2.
func newOperatorAPIWithDevices(t *testing.T) (*operatorAPI, *fixedReadings) {
	t.Helper()
	o, s := newOperatorAPI(t), &fixedReadings{stored: map[string]time.Time{}, uplinks: map[string]iot.RadioData{}}
	o.mustApply(`{"sensor_types":[{"id":"temperature","name":"Temperature","metric_units":"°C"}],"accounts":[{"name":"acme"},{"name":"globex"}]}`, "")
	devices := iot.New(o.db.Devices, cachetest.Open(t).IoT(), s, catalogtest.Compile, iot.Options{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return o.now }})
	for _, acct := range []relay.AccountID{1, 2} {
		relaytest.NoError(t, o.db.Devices.CreateDecoder(t.Context(), acct, iot.Decoder{ID: "lpp"}))
	}
	for i, id := range []string{"a1", "a2", "a3", "b1"} {
		acct := relay.AccountID(1)
		if id == "b1" {
			acct = 2
		}
		d := iot.Device{ID: id, Identifier: fmt.Sprintf("70b3d57ed00000%02d", i), Name: "Probe " + id, Type: iot.LoRaWAN, DecoderID: "lpp", CreatedAt: o.now}
		relaytest.NoError(t, o.db.Devices.CreateDevice(t.Context(), acct, d, []iot.Sensor{{ID: iot.SensorID(id, "t"), DeviceID: id, Key: "t", Name: "t", Slope: 1, SensorTypeID: "temperature"}}))
	}
	s.stored["a2"], s.stored["a1"], s.stored["b1"] = o.now.Add(-time.Hour), o.now.Add(-time.Minute), o.now.Add(-2*time.Hour)
	pair := rule.Pair{RuleID: "warm", DeviceID: "a2"}
	_, err := o.db.Rules.SaveDecision(t.Context(), 1, []rule.Pair{pair}, o.now, func([]rule.PairState) (rule.Decision, error) {
		return rule.Decision{States: []rule.PairState{{Pair: pair, AlarmID: "x1", RaisedAt: o.now}}, Raised: []rule.Alarm{{ID: "x1", RuleID: "warm", DeviceID: "a2", State: rule.Raised, RaisedAt: o.now}}}, nil
	})
	relaytest.NoError(t, err)
	o.app = httpd.New(httpd.Options{Logger: slog.New(slog.DiscardHandler)})
	New(Deps{Accounts: o.db.Accounts, IoT: devices, Types: o.db.Devices, Now: func() time.Time { return o.now }}).Mount(o.app, httpd.NewAuth(httpd.AuthDeps{Tokens: o.db.Accounts, AdminToken: "root", Now: time.Now}))
	return o, s
}

func TestDevicesAreListed(t *testing.T) {
	o, _ := newOperatorAPIWithDevices(t)
	for _, tc := range []struct{ name, query, want string }{
		{"no filter", "", "a1 a2 a3 b1"},
		{"by silence, devices without a frame first", "order=silent", "a3 b1 a2 a1"},
		{"an account by its name", "account=globex", "b1"},
		{"a part of the name", "q=PROBE%20a", "a1 a2 a3"},
		{"a part of the account's name", "q=Glob", "b1"},
		{"an identifier with hyphens", "q=70-B3-D5-7E-D0-00-00-01", "a2"},
		{"a raised alarm", "alarmed=true", "a2"},
		{"a raised alarm, another account", "alarmed=true&account=2", ""},
		{"a decoder", "decoder=lpp&account=1", "a1 a2 a3"},
		{"an unused decoder", "decoder=none", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := strings.Join(o.list("GET /admin/devices?"+tc.query).ids(), " "); got != tc.want {
				t.Errorf("devices = %q, want %q", got, tc.want)
			}
			var paged []string
			for cursor, hasMore := "", true; hasMore; hasMore = cursor != "" {
				page := o.list("GET /admin/devices?limit=1&" + tc.query + "&cursor=" + cursor)
				paged, cursor = slices.Concat(paged, page.ids()), page.Meta.Next
			}
			if got := strings.Join(paged, " "); got != tc.want {
				t.Errorf("devices in pages of one = %q, want %q", got, tc.want)
			}
		})
	}
	for query, want := range map[string]string{"cursor=none": "This is not a cursor of this list.", "order=loud": "The order must be account or silent, not", "account=nobody": "There is no account named"} {
		got := o.call("GET /admin/devices?"+query, "")
		answertest.HasPrefix(t, "the answer to "+query, got, "422 ")
		answertest.Contains(t, "the answer to "+query, got, want)
	}
}

func TestDevicesHaveRadioDataAlarmsAndPosition(t *testing.T) {
	o, s := newOperatorAPIWithDevices(t)
	rssi, battery := -97.5, 81.0
	s.uplinks["a2"] = iot.RadioData{DeviceID: "a2", Time: o.now, RSSI: &rssi, Battery: &battery, Latitude: new(51.5), Longitude: new(-0.1)}
	list := o.call("GET /admin/devices?q=a2", "")
	device := o.call("GET /admin/devices/a2", "")
	for _, want := range []string{`"account_name":"acme"`, `"alarms":1`, `"battery":81`, `"rssi":-97.5`, `"snr":null`, `"position":{"latitude":51.5,"longitude":-0.1,"source":"network"}`} {
		answertest.Contains(t, "the list", list, want)
		answertest.Contains(t, "the device", device, want)
	}
	answertest.Contains(t, "the device", device, `"missing":[]`, `"type_name":"Temperature","metric_units":"°C"`)
	s.err = errors.New("no answer")
	list = o.call("GET /admin/devices?q=a2", "")
	answertest.HasPrefix(t, "the list without the reading store", list, "200 ")
	answertest.Contains(t, "the list without the reading store", list, `"missing":"`, "no answer")
	device = o.call("GET /admin/devices/a2?account=acme", "")
	answertest.HasPrefix(t, "the device without the reading store", device, "200 ")
	answertest.Contains(t, "the device without the reading store", device, "signal and battery: ")
	for _, path := range []string{"none", "a2?account=globex", "none/frames", "none/markers"} {
		if got := o.call("GET /admin/devices/"+path, ""); !strings.HasPrefix(got, "404 ") {
			t.Errorf("answer for %s = %s, want 404", path, got)
		}
	}
}
