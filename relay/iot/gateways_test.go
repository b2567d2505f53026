package iot

import (
	"fmt"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestTwoGateways runs concurrent operations of two gateways with one PostgreSQL.
func TestTwoGateways(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, a, b *Store){
		"one of two concurrent creations of a device succeeds": createAtOnce,
		"a devEUI that moves between accounts has one owner":   identifierChangesHands,
		"no rows of deleted devices remain":                    deletedDuringWrites,
		"the number of markers stays within its limit":         lastMarker,
		"both gateways save frames of the same devices":        framesFromBoth,
		"both gateways add and calibrate a sensor":             sensorsFromBoth,
		"one of two concurrent deletions finds no device":      deletedTwice,
		"each change of the catalogue increments the version":  versionsFromBoth,
		"no device has a deleted decoder":                      decoderDeletedInUse,
		"one location is for imported devices":                 importedLocations,
	} {
		t.Run(name, func(t *testing.T) {
			gateways := dbtest.TwoGateways(t, newStore)
			test(t, gateways[0], gateways[1])
		})
	}
}

// newStore returns a store without a DeviceHook.
func newStore(database *db.DB) *Store { return NewStore(database, nil) }

// decoderDeletedInUse deletes decoders while devices are created with them or changed to use them.
// Afterwards no device has a deleted decoder.
func decoderDeletedInUse(t *testing.T, a, b *Store) {
	relaytest.NoError(t, a.CreateDevice(t.Context(), 1, testDevice("old", "old"), nil))
	for round := range 20 {
		decoder := fmt.Sprint("x", round)
		relaytest.NoError(t, a.CreateDecoder(t.Context(), 1, Decoder{ID: decoder}))
		onBoth(a, b, 3, func(s *Store, i int) {
			switch i % 3 {
			case 0:
				service := New(s, nil, nil, nil, Options{})
				wantOneOf(t, service.DeleteDecoder(t.Context(), 1, decoder), relay.KindInvalid, relay.KindNotFound)
			case 1:
				d := testDevice(fmt.Sprint(decoder, "-", i), fmt.Sprint(decoder, "-", i))
				d.DecoderID = decoder
				wantOneOf(t, s.CreateDevice(t.Context(), 1, d, nil), relay.KindInvalid)
			case 2:
				_, err := s.ChangeDevice(t.Context(), 1, "old", func(d *Device) error { d.DecoderID = decoder; return nil })
				wantOneOf(t, err, relay.KindInvalid)
			}
		})
	}
	decoders := relaytest.Must(a.Decoders(t.Context(), 1))(t)
	byID := db.IndexBy(decoders, func(d Decoder) string { return d.ID })
	for _, d := range relaytest.Must(a.Devices(t.Context(), 1))(t) {
		if _, ok := byID[d.DecoderID]; d.DecoderID != "" && !ok {
			t.Errorf("device %s has the decoder %s, which is deleted", d.ID, d.DecoderID)
		}
	}
}

// importedLocations creates locations for imported devices concurrently.
func importedLocations(t *testing.T, a, b *Store) {
	onBoth(a, b, 5, func(s *Store, i int) {
		_, err := New(s, nil, nil, nil, Options{}).CreateLocation(t.Context(), 1, Location{Name: fmt.Sprint(i), Imported: true})
		wantOneOf(t, err, relay.KindInvalid)
	})
	relaytest.Equal(t, "the number of locations", len(relaytest.Must(a.Locations(t.Context(), 1))(t)), 1)
}

// onBoth runs do n times on each of two gateways, concurrently.
func onBoth(a, b *Store, n int, do func(s *Store, i int)) {
	stores := []*Store{a, b}
	dbtest.RunConcurrently(2*n, func(i int) { do(stores[i%2], i) })
}

// wantOneOf reports an error whose kind is not one of kinds.
func wantOneOf(t *testing.T, err error, kinds ...relay.Kind) {
	t.Helper()
	if err == nil {
		return
	}
	for _, k := range kinds {
		if relay.KindOf(err) == k {
			return
		}
	}
	t.Error(err)
}

// identifierChangesHands creates and deletes devices with one devEUI in two accounts. Afterwards
// each device has a claim, and each claim has a device.
func identifierChangesHands(t *testing.T, a, b *Store) {
	onBoth(a, b, 30, func(s *Store, i int) {
		acct, id := relay.AccountID(1+i%3%2), fmt.Sprint("d", i)
		wantOneOf(t, s.CreateDevice(t.Context(), acct, testDevice(id, eui), []Sensor{testSensor(id, "a")}), relay.KindConflict)
		if i%5 > 0 {
			wantOneOf(t, s.DeleteDevice(t.Context(), acct, id), relay.KindNotFound)
		}
	})
	devices, err := db.Values[int64](t.Context(), a.db, "test", "SELECT account FROM device")
	claims, err2 := db.Values[int64](t.Context(), a.db, "test", "SELECT account FROM device_claim")
	relaytest.NoError(t, err, err2)
	if fmt.Sprint(devices) != fmt.Sprint(claims) || len(devices) > 1 {
		t.Errorf("accounts of devices %v, accounts of claims %v; want at most one, and the same", devices, claims)
	}
}

// deletedDuringWrites deletes devices while both gateways write data of these devices.
func deletedDuringWrites(t *testing.T, a, b *Store) {
	const devices = 20
	for i := range devices {
		relaytest.NoError(t, a.CreateDevice(t.Context(), 1, testDevice(fmt.Sprint("d", i), fmt.Sprint("x", i)), nil))
	}
	var frames []RawFrame
	for i := range devices {
		frames = append(frames, testFrame(fmt.Sprint("d", i), i), testFrame(fmt.Sprint("d", i), i+1))
	}
	onBoth(a, b, devices, func(s *Store, i int) {
		id := fmt.Sprint("d", i%devices)
		relaytest.NoError(t, s.KeepFrames(t.Context(), 1, frames))
		wantOneOf(t, s.AddSensors(t.Context(), 1, id, []Sensor{testSensor(id, "a")}), relay.KindNotFound)
		wantOneOf(t, s.DeleteDevice(t.Context(), 1, fmt.Sprint("d", (i+7)%devices)), relay.KindNotFound)
		_, _, err := s.PutMarker(t.Context(), 1, id, Marker{ID: fmt.Sprint("m", i)}, dbtest.TimeAt(0))
		wantOneOf(t, err, relay.KindNotFound)
		relaytest.NoError(t, s.RetypeSensors(t.Context(), 1, id, map[string]string{"a": fmt.Sprint("t", i)}))
	})
	for i := range devices {
		if n := rowsOf(t, a, fmt.Sprint("d", i)); n != 0 {
			t.Errorf("device %d: %d rows remain, want 0", i, n)
		}
	}
}

func lastMarker(t *testing.T, a, b *Store) {
	relaytest.NoError(t, a.CreateDevice(t.Context(), 1, testDevice("d1", "x"), nil))
	fillMarkers(t, a, MaxMarkers-3)
	onBoth(a, b, 8, func(s *Store, i int) {
		_, _, err := s.PutMarker(t.Context(), 1, "d1", Marker{ID: fmt.Sprint("more", i)}, dbtest.TimeAt(0))
		wantOneOf(t, err, relay.KindInvalid)
	})
	if n := rowsOf(t, a, "d1") - 1; n != MaxMarkers {
		t.Errorf("%d markers, want %d", n, MaxMarkers)
	}
}

func framesFromBoth(t *testing.T, a, b *Store) {
	for _, id := range []string{"d1", "d2", "d3"} {
		relaytest.NoError(t, a.CreateDevice(t.Context(), 1, testDevice(id, id), nil))
	}
	onBoth(a, b, 8, func(s *Store, i int) {
		var frames []RawFrame
		for n := range 90 { // each call has the devices in another order
			frames = append(frames, testFrame(fmt.Sprint("d", 1+(n+i)%3), 10*i+n))
		}
		relaytest.NoError(t, s.KeepFrames(t.Context(), 1, frames), s.KeepFrames(t.Context(), 1, frames))
	})
	for _, id := range []string{"d1", "d2", "d3"} {
		got, err := b.Frames(t.Context(), 1, id, dbtest.TimeAt(0))
		if err != nil || len(got) == 0 || len(got) > MaxFrames || len(got) != rowsOf(t, a, id)-1 {
			t.Errorf("device %s: %d frames, %v", id, len(got), err)
		}
	}
}

func sensorsFromBoth(t *testing.T, a, b *Store) {
	relaytest.NoError(t, a.CreateDevice(t.Context(), 1, testDevice("d1", "x"), nil))
	onBoth(a, b, 8, func(s *Store, _ int) {
		relaytest.NoError(t, s.AddSensors(t.Context(), 1, "d1", []Sensor{testSensor("d1", "b"), testSensor("d1", "a")}))
		_, err := s.ChangeSensor(t.Context(), 1, "d1", "a", func(x *Sensor) error { x.Offset++; return nil })
		relaytest.NoError(t, err)
	})
	got, err := a.Sensors(t.Context(), 1, "d1")
	relaytest.NoError(t, err)
	if len(got) != 2 {
		t.Fatalf("%d sensors, want 2", len(got))
	}
	relaytest.Equal(t, "offset of sensor 0", got[0].Offset, 16)
	relaytest.Equal(t, "offset of sensor 1", got[1].Offset, 0)
}

func deletedTwice(t *testing.T, a, b *Store) {
	for i := range 10 {
		id := fmt.Sprint("d", i)
		relaytest.NoError(t, a.CreateDevice(t.Context(), 1, testDevice(id, eui), nil))
		var mu sync.Mutex
		deleted := 0
		onBoth(a, b, 2, func(s *Store, _ int) {
			err := s.DeleteDevice(t.Context(), 1, id)
			wantOneOf(t, err, relay.KindNotFound)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				deleted++
			}
		})
		if deleted != 1 {
			t.Errorf("deleted %d times, want 1", deleted)
		}
	}
}

func versionsFromBoth(t *testing.T, a, b *Store) {
	onBoth(a, b, 10, func(s *Store, i int) {
		relaytest.NoError(t, s.PutSensorType(t.Context(), SensorType{ID: fmt.Sprint("t", i)}), s.PutLocation(t.Context(), 1, Location{ID: "l"}))
	})
	versions, err := a.Versions(t.Context(), []relay.AccountID{1, 2})
	if err != nil || versions[1].Records != 20<<20+20 || versions[2].Records != 20 {
		t.Errorf("versions %v, %v", versions, err)
	}
}
