package iot

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestDevices(t *testing.T) {
	dbtest.Each(t, newStore, map[string]func(*testing.T, *Store){
		"a device is read as it was saved":                               deviceIsReadAsSaved,
		"a devEUI belongs to one account":                                identifierIsClaimed,
		"other identifiers may be used by several accounts":              identifierIsSharedByAccounts,
		"the device of a released claim stays":                           claimIsReleased,
		"the identifier of a deleted device is released":                 identifierOfDeletedDevice,
		"a deleted device is not created again by a change":              deletedDeviceStaysDeleted,
		"an account does not see records of another account":             accountsAreIsolated,
		"one of two concurrent creations of a device succeeds":           creationRace,
		"concurrent changes of a decoder are all saved":                  decoderRace,
		"a change that returns an error is not saved":                    refusedChange,
		"a sensor that is added again keeps its calibration":             sensorAddedAgain,
		"devices are loaded by identifier with their sensors":            devicesAreLoaded,
		"each change increments the version":                             versionIncrements,
		"the sensors of a device are listed":                             sensorsAreListed,
		"unmapped keys of a decoder are counted":                         unmappedAreCounted,
		"unmapped keys with the same stored string are counted together": unmappedKeysWithTheSameStoredString,
		"sensor types and locations are saved, deleted and listed":       typesAndLocations,
		"the rows of a deleted device are deleted":                       rowsOfDeletedDevice,
		"a late deletion keeps the device that reuses the identifier":    lateDeletion,
		"the sensors of an account are counted":                          seriesAreCounted,
		"a sensor keeps its former types":                                sensorsAreRetyped,
		"concurrent changes of calibration and type are both saved":      retypeRace,
		"sensors of deleted devices are listed":                          retiredSensorsAreListed,
		"an event marker is created once and then changed":               markersAreSaved,
		"the number of event markers of a device is limited":             markersAreLimited,
		"each raw frame is kept once":                                    framesAreKept,
		"raw frames are limited in number and age":                       framesAreLimited,
		"old raw frames of a silent device are deleted":                  framesAreSwept,
		"a sweep deletes more frames than one transaction":               manyFramesAreSwept,
		"a repeated change has no further effect":                        changesAreRepeatable,
		"records with any texts and numbers are read exactly":            recordsAreExact,
		"hundreds of devices are loaded at once":                         manyAreLoaded,
	})
}

const eui = "a84041d2c5182f01"

func testDevice(id, identifier string) Device {
	return Device{ID: id, Name: "n-" + id, Identifier: identifier, Type: LoRaWAN, Longitude: new(-0.125), CreatedAt: dbtest.TimeAt(0), UpdatedAt: dbtest.TimeAt(0)}
}

func testSensor(device, key string) Sensor {
	return Sensor{ID: SensorID(device, key), DeviceID: device, Key: key, Name: key, Slope: 1, SensorTypeID: "temperature", CreatedAt: dbtest.TimeAt(0), UpdatedAt: dbtest.TimeAt(0)}
}

func deviceIsReadAsSaved(t *testing.T, s *Store) {
	want := testDevice("d1", eui)
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, want, []Sensor{testSensor("d1", "b"), testSensor("d1", "a")}))
	got, err := s.Device(t.Context(), 1, "d1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "longitude", *got.Longitude, -0.125)
	relaytest.Equal(t, "name", got.Name, want.Name)
	relaytest.Equal(t, "time of creation", got.CreatedAt, dbtest.TimeAt(0))
	relaytest.Equal(t, "ID by identifier", relaytest.Must(s.DeviceByIdentifier(t.Context(), 1, eui))(t).ID, "d1")
	sensors, err := s.Sensors(t.Context(), 1, "d1")
	relaytest.NoError(t, err)
	if len(sensors) != 2 {
		t.Fatalf("%d sensors, want 2", len(sensors))
	}
	relaytest.Equal(t, "key of sensor 0", sensors[0].Key, "a")
	relaytest.Equal(t, "sensor 1", sensors[1], testSensor("d1", "b"))
	newer := testDevice("d0", "x")
	newer.CreatedAt = dbtest.TimeAt(1)
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, newer, nil))
	devices, err := s.Devices(t.Context(), 1)
	if n, _ := s.CountDevices(t.Context(), 1); err != nil || n != 2 || len(devices) != 2 || devices[0].ID != "d1" {
		t.Errorf("%d devices, want 2: %+v, %v", n, devices, err)
	}
}

func identifierIsClaimed(t *testing.T, s *Store) {
	for _, identifier := range []string{eui, "aabbccddeeff"} {
		relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d-"+identifier, identifier), nil))
		dbtest.WantKind(t, s.CreateDevice(t.Context(), 1, testDevice("again", identifier), nil), relay.KindConflict)
		dbtest.WantKind(t, s.CreateDevice(t.Context(), 2, testDevice("theirs", identifier), nil), relay.KindConflict)
	}
	if n, err := s.CountDevices(t.Context(), 2); n != 0 || err != nil {
		t.Errorf("the other account has %d devices, want 0; %v", n, err)
	}
	relaytest.NoError(t, s.DeleteDevice(t.Context(), 1, "d-"+eui), s.CreateDevice(t.Context(), 2, testDevice("theirs", eui), nil))
}

func identifierIsSharedByAccounts(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", "tank {7}"), nil),
		s.CreateDevice(t.Context(), 2, testDevice("d2", "tank {7}"), nil))
	relaytest.Equal(t, "ID by identifier", relaytest.Must(s.DeviceByIdentifier(t.Context(), 2, "tank {7}"))(t).ID, "d2")
}

func claimIsReleased(t *testing.T, s *Store) {
	for acct, devices := range map[relay.AccountID][]Device{
		1: {testDevice("d1", eui), testDevice("d2", "a84041d2c5182f02"), testDevice("d3", "shed")}, 2: {testDevice("d4", "70b3d5000001")},
	} {
		for _, d := range devices {
			relaytest.NoError(t, s.CreateDevice(t.Context(), acct, d, nil))
		}
	}
	list := func(prefix, cursor string, limit int) []Ownership {
		return relaytest.Must(s.Ownerships(t.Context(), prefix, cursor, limit))(t)
	}
	claim1, claim2, claim3 := Ownership{Identifier: "70b3d5000001", Account: 2, DeviceID: "d4"},
		Ownership{Identifier: eui, Account: 1, DeviceID: "d1"}, Ownership{Identifier: "a84041d2c5182f02", Account: 1, DeviceID: "d2"}
	relaytest.Equal(t, "all claims", list("", "", 10), []Ownership{claim1, claim2, claim3})
	relaytest.Equal(t, "the claims of a prefix", list("a84041", "", 10), []Ownership{claim2, claim3})
	relaytest.Equal(t, "a page", list("a84041", eui, 1), []Ownership{claim3})
	relaytest.Equal(t, "the claims of a complete identifier", list(eui, "", 10), []Ownership{claim2})

	released, err := s.ReleaseOwnership(t.Context(), eui)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the released claim", released, claim2)
	if _, err := s.ReleaseOwnership(t.Context(), eui); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("second release: %v, want not found", err)
	}
	relaytest.NoError(t, s.CreateDevice(t.Context(), 2, testDevice("d5", eui), nil))
	relaytest.Equal(t, "the new claim", list(eui, "", 10), []Ownership{{Identifier: eui, Account: 2, DeviceID: "d5"}})
	relaytest.Equal(t, "the device of the former owner", relaytest.Must(s.DeviceByIdentifier(t.Context(), 1, eui))(t).ID, "d1")
	relaytest.NoError(t, s.DeleteDevice(t.Context(), 1, "d1")) // keeps the claim of the other account
	relaytest.Equal(t, "the claim after the deletion", len(list(eui, "", 10)), 1)
}

func identifierOfDeletedDevice(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", eui), []Sensor{testSensor("d1", "a")}))
	dbtest.WantKind(t, s.DeleteDevice(t.Context(), 2, "d1"), relay.KindNotFound)
	relaytest.NoError(t, s.DeleteDevice(t.Context(), 1, "d1"))
	dbtest.WantKind(t, s.DeleteDevice(t.Context(), 1, "d1"), relay.KindNotFound)
	relaytest.NoError(t, s.CreateDevice(t.Context(), 2, testDevice("d2", eui), nil))
}

// rowsOf counts the stored rows of a device.
func rowsOf(t *testing.T, s *Store, device string) int {
	t.Helper()
	n, err := db.Value[int](t.Context(), s.db, "test", `
SELECT (SELECT count(*) FROM device WHERE id = $1) + (SELECT count(*) FROM sensor WHERE device = $1)
     + (SELECT count(*) FROM marker WHERE device = $1) + (SELECT count(*) FROM raw_frame WHERE device = $1)`, device)
	relaytest.NoError(t, err)
	return n
}

// deletedDeviceStaysDeleted checks that a batch in progress does not restore a deleted device.
func deletedDeviceStaysDeleted(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", eui), nil), s.DeleteDevice(t.Context(), 1, "d1"),
		s.KeepFrames(t.Context(), 1, []RawFrame{testFrame("d1", 1)}))
	dbtest.WantKind(t, s.AddSensors(t.Context(), 1, "d1", []Sensor{testSensor("d1", "a")}), relay.KindNotFound)
	_, err := s.ChangeDevice(t.Context(), 1, "d1", func(d *Device) error { d.Name = "back"; return nil })
	dbtest.WantKind(t, err, relay.KindNotFound)
	_, _, err = s.PutMarker(t.Context(), 1, "d1", Marker{ID: "m"}, dbtest.TimeAt(0))
	dbtest.WantKind(t, err, relay.KindNotFound)
	if rowCount := rowsOf(t, s, "d1"); rowCount != 0 {
		t.Errorf("%d rows remain, want 0", rowCount)
	}
}

func accountsAreIsolated(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", eui), []Sensor{testSensor("d1", "a")}),
		s.CreateDecoder(t.Context(), 1, Decoder{ID: "x", Name: "mine"}),
		s.PutLocation(t.Context(), 1, Location{ID: "l"}))
	_, byID := s.Device(t.Context(), 2, "d1")
	_, byName := s.DeviceByIdentifier(t.Context(), 2, eui)
	_, decoder := s.Decoder(t.Context(), 2, "x")
	_, changed := s.ChangeDecoder(t.Context(), 2, "x", func(*Decoder) error { return nil })
	_, sensor := s.ChangeSensor(t.Context(), 2, "d1", "a", func(*Sensor) error { return nil })
	_, sensors := s.Sensors(t.Context(), 2, "d1")
	for _, err := range []error{byID, byName, decoder, changed, sensor, sensors} {
		dbtest.WantKind(t, err, relay.KindNotFound)
	}
	devices, e1 := s.Devices(t.Context(), 2)
	decoders, e2 := s.Decoders(t.Context(), 2)
	locations, e3 := s.Locations(t.Context(), 2)
	loaded, e4 := s.Load(t.Context(), 2, []string{eui})
	relaytest.NoError(t, e1, e2, e3, e4)
	if len(devices)+len(decoders)+len(locations)+len(loaded) > 0 {
		t.Error(devices, decoders, locations, loaded)
	}
}

func creationRace(t *testing.T, s *Store) { createAtOnce(t, s, s) }

// createAtOnce creates one device for two accounts, several times concurrently.
func createAtOnce(t *testing.T, a, b *Store) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			errs[i] = []*Store{a, b}[i%2].CreateDevice(t.Context(), relay.AccountID(1+i/2%2), testDevice(fmt.Sprint("d", i), eui), nil)
		})
	}
	wg.Wait()
	wins := countSuccesses(t, errs, relay.KindConflict)
	count1, e1 := a.CountDevices(t.Context(), 1)
	count2, e2 := b.CountDevices(t.Context(), 2)
	if wins != 1 || count1+count2 != 1 || errors.Join(e1, e2) != nil {
		t.Errorf("%d creations succeeded, want 1; devices of the accounts: %d and %d", wins, count1, count2)
	}
}

// countSuccesses counts nil errors. It fails the test if another error is not of the given kind.
func countSuccesses(t *testing.T, errs []error, kind relay.Kind) (n int) {
	t.Helper()
	for _, err := range errs {
		if err == nil {
			n++
		} else if relay.KindOf(err) != kind {
			t.Error(err)
		}
	}
	return n
}

func decoderRace(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDecoder(t.Context(), 1, Decoder{ID: "x"}))
	dbtest.RunConcurrently(10, func(i int) {
		_, err := s.ChangeDecoder(t.Context(), 1, "x", func(d *Decoder) error {
			d.Sensors = append(d.Sensors, Mapping{Key: fmt.Sprint(i)})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	if d, err := s.Decoder(t.Context(), 1, "x"); err != nil || len(d.Sensors) != 10 {
		t.Errorf("%d mappings, want 10; %v", len(d.Sensors), err)
	}
}

func refusedChange(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDecoder(t.Context(), 1, Decoder{ID: "x", Name: "old"}))
	refusal := errors.New("no")
	_, err := s.ChangeDecoder(t.Context(), 1, "x", func(d *Decoder) error { d.Name = "new"; return refusal })
	if d, _ := s.Decoder(t.Context(), 1, "x"); !errors.Is(err, refusal) || d.Name != "old" {
		t.Errorf("%+v, %v", d, err)
	}
}

func sensorAddedAgain(t *testing.T, s *Store) {
	calibrated := testSensor("d1", "a")
	calibrated.Slope = 2
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", eui), []Sensor{calibrated}),
		s.AddSensors(t.Context(), 1, "d1", []Sensor{testSensor("d1", "a"), testSensor("d1", "b")}))
	got, err := s.Sensors(t.Context(), 1, "d1")
	relaytest.NoError(t, err)
	if len(got) != 2 {
		t.Fatalf("%d sensors, want 2", len(got))
	}
	relaytest.Equal(t, "slope of sensor 0", got[0].Slope, 2)
	relaytest.Equal(t, "key of sensor 1", got[1].Key, "b")
	changed, err := s.ChangeSensor(t.Context(), 1, "d1", "b", func(x *Sensor) error { x.Offset = -3; return nil })
	got, _ = s.Sensors(t.Context(), 1, "d1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "offset of the changed sensor", changed.Offset, -3)
	relaytest.Equal(t, "offset of sensor 1", got[1].Offset, -3)
}

func devicesAreLoaded(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", eui), []Sensor{testSensor("d1", "a")}),
		s.CreateDevice(t.Context(), 1, testDevice("d2", "tank"), nil))
	got, err := s.Load(t.Context(), 1, []string{"tank", "nobody", eui})
	if err != nil || len(got) != 2 || got["tank"].Device.ID != "d2" || len(got[eui].Sensors) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	relaytest.Equal(t, "number of devices for no identifiers", len(relaytest.Must(s.Load(t.Context(), 1, nil))(t)), 0)
}

func versionIncrements(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", eui), []Sensor{testSensor("d1", "a")}))
	version := func(acct relay.AccountID) int64 {
		v, err := s.Versions(t.Context(), []relay.AccountID{acct, 7})
		relaytest.NoError(t, err)
		return v[acct].Records
	}
	for name, change := range map[string]func() error{
		"a new decoder": func() error { return s.CreateDecoder(t.Context(), 1, Decoder{ID: "x"}) },
		"a location":    func() error { return s.PutLocation(t.Context(), 1, Location{ID: "l"}) },
		"a sensor type": func() error { return s.PutSensorType(t.Context(), SensorType{ID: "t"}) },
		"a device": func() error {
			_, err := s.ChangeDevice(t.Context(), 1, "d1", func(d *Device) error { d.Name = "new"; return nil })
			return err
		},
		"a sensor": func() error {
			_, err := s.ChangeSensor(t.Context(), 1, "d1", "a", func(x *Sensor) error { x.Slope++; return nil })
			return err
		},
	} {
		oldVersion, otherVersion := version(1), version(2)
		relaytest.NoError(t, change())
		if version(1) == oldVersion {
			t.Errorf("%s: the version is still %d", name, oldVersion)
		}
		if name != "a sensor type" && version(2) != otherVersion {
			t.Errorf("%s: the other account's version changed", name)
		}
	}
}

func sensorsAreListed(t *testing.T, s *Store) {
	sensor := Sensor{ID: SensorID("d", "a"), DeviceID: "d", Key: "a", Slope: 2, RetentionDays: 3, SensorTypeID: "t"}
	if _, err := s.Sensors(t.Context(), 1, "d"); relay.KindOf(err) != relay.KindNotFound {
		t.Fatalf("a missing device: %v, want not found", err)
	}
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d", eui), []Sensor{sensor}), s.CreateDevice(t.Context(), 1, testDevice("e", "without sensors"), nil))
	relaytest.Equal(t, "sensors", relaytest.Must(s.Sensors(t.Context(), 1, "d"))(t), []Sensor{sensor})
	relaytest.Equal(t, "sensors of a device without any", relaytest.Must(s.Sensors(t.Context(), 1, "e"))(t), []Sensor{})
	if _, err := s.Sensors(t.Context(), 2, "d"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("another account's device: %v, want not found", err)
	}
}

func typesAndLocations(t *testing.T, s *Store) {
	relaytest.NoError(t, s.PutSensorType(t.Context(), SensorType{ID: "temperature", Name: "Temperature", ImperialSlope: 1.8}),
		s.PutSensorType(t.Context(), SensorType{ID: "gone"}), s.DeleteSensorType(t.Context(), "gone"),
		s.PutLocation(t.Context(), 1, Location{ID: "b", Name: "B", Imported: true}), s.PutLocation(t.Context(), 1, Location{ID: "a"}),
		s.PutLocation(t.Context(), 1, Location{ID: "gone"}), s.DeleteLocation(t.Context(), 1, "gone"),
		s.CreateDecoder(t.Context(), 1, Decoder{ID: "gone"}), s.DeleteDecoder(t.Context(), 1, "gone"))
	types, err := s.SensorTypes(t.Context())
	relaytest.NoError(t, err)
	if len(types) != 1 {
		t.Fatalf("%d sensor types, want 1", len(types))
	}
	relaytest.Equal(t, "imperial slope of temperature", types["temperature"].ImperialSlope, 1.8)
	locations, err := s.Locations(t.Context(), 1)
	relaytest.NoError(t, err)
	if len(locations) != 2 {
		t.Fatalf("%d locations, want 2", len(locations))
	}
	relaytest.Equal(t, "ID of location 0", locations[0].ID, "a")
	relaytest.Equal(t, "imported flag of location 1", locations[1].Imported, true)
	relaytest.Equal(t, "number of decoders", len(relaytest.Must(s.Decoders(t.Context(), 1))(t)), 0)
}
