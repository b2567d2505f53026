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
		"a device comes back as it was saved":                      deviceComesBack,
		"an identifier belongs to one account when it is a devEUI": identifierIsClaimed,
		"another identifier is each account's own":                 identifierIsOwn,
		"a claim is released and its device stays":                 claimIsReleased,
		"a deleted device lets go of its identifier":               deviceLetsGo,
		"a deleted device stays away":                              deviceStaysAway,
		"two accounts see nothing of each other":                   accountsAreApart,
		"of two that create one device one wins":                   creationRace,
		"no change of a decoder is lost when ten are made at once": decoderRace,
		"what change refuses is not saved":                         changeRefused,
		"a sensor keeps its key when it is added again":            sensorAddedAgain,
		"devices load by identifier with their sensors":            devicesLoad,
		"every change counts the version up":                       versionsCount,
		"what is known of a device's readings comes in one go":     sensorsOfADevice,
		"unmapped keys of a decoder are counted":                   unmappedAreCounted,
		"unmapped keys that are stored alike are counted together": unmappedKeysThatAreStoredAlike,
		"sensor types and locations come, go and are listed":       typesAndLocations,
		"a deleted device takes with it all that is kept of it":    deviceTakesAllWithIt,
		"a late deletion takes nothing from who came after":        deletionOfTheFirst,
		"the sensors of an account are counted":                    seriesAreCounted,
		"a sensor remembers the types it had":                      sensorsAreRetyped,
		"calibration and type do not lose one another":             retypeRace,
		"sensors of deleted devices are remembered":                retiredSensorsAreListed,
		"an event marker is made once and then changed":            markersAreKept,
		"a device has so many event markers":                       markersHaveAnEnd,
		"raw frames are kept, each once":                           framesAreKept,
		"raw frames have an end in number and in time":             framesHaveAnEnd,
		"raw frames of a silent device are swept":                  framesAreSwept,
		"a sweep deletes more than one transaction holds":          manyFramesAreSwept,
		"a change that is repeated changes nothing more":           changesRepeat,
		"a record comes back exactly":                              recordsAreExact,
		"hundreds of devices load at once":                         manyLoad,
	})
}

const eui = "a84041d2c5182f01"

func testDevice(id, identifier string) Device {
	return Device{ID: id, Name: "n-" + id, Identifier: identifier, Type: LoRaWAN, Longitude: new(-0.125), CreatedAt: dbtest.At(0), UpdatedAt: dbtest.At(0)}
}

func testSensor(device, key string) Sensor {
	return Sensor{ID: SensorID(device, key), DeviceID: device, Key: key, Name: key, Slope: 1, SensorTypeID: "temperature", CreatedAt: dbtest.At(0), UpdatedAt: dbtest.At(0)}
}

func deviceComesBack(t *testing.T, s *Store) {
	want := testDevice("d1", eui)
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, want, []Sensor{testSensor("d1", "b"), testSensor("d1", "a")}))
	got, err := s.Device(t.Context(), 1, "d1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of Device, *got.Longitude", *got.Longitude, -0.125)
	relaytest.Equal(t, "result of Device, Name", got.Name, want.Name)
	relaytest.Equal(t, "result of Device, CreatedAt", got.CreatedAt, dbtest.At(0))
	relaytest.Equal(t, "by identifier", relaytest.Must(s.DeviceByIdentifier(t.Context(), 1, eui))(t).ID, "d1")
	sensors, err := s.Sensors(t.Context(), 1, "d1")
	relaytest.NoError(t, err)
	if len(sensors) != 2 {
		t.Fatalf("sensors: %d results, want %d", len(sensors), 2)
	}
	relaytest.Equal(t, "sensors, [0].Key", sensors[0].Key, "a")
	relaytest.Equal(t, "sensors, [1]", sensors[1], testSensor("d1", "b"))
	later := testDevice("d0", "x")
	later.CreatedAt = dbtest.At(1)
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, later, nil))
	all, err := s.Devices(t.Context(), 1)
	if n, _ := s.CountDevices(t.Context(), 1); err != nil || n != 2 || len(all) != 2 || all[0].ID != "d1" {
		t.Errorf("%d devices: %+v, %v", n, all, err)
	}
}

func identifierIsClaimed(t *testing.T, s *Store) {
	for _, identifier := range []string{eui, "aabbccddeeff"} {
		relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d-"+identifier, identifier), nil))
		dbtest.WantKind(t, s.CreateDevice(t.Context(), 1, testDevice("again", identifier), nil), relay.KindConflict)
		dbtest.WantKind(t, s.CreateDevice(t.Context(), 2, testDevice("theirs", identifier), nil), relay.KindConflict)
	}
	if n, err := s.CountDevices(t.Context(), 2); n != 0 || err != nil {
		t.Errorf("the other account has %d devices, %v", n, err)
	}
	relaytest.NoError(t, s.DeleteDevice(t.Context(), 1, "d-"+eui), s.CreateDevice(t.Context(), 2, testDevice("theirs", eui), nil))
}

func identifierIsOwn(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", "tank {7}"), nil),
		s.CreateDevice(t.Context(), 2, testDevice("d2", "tank {7}"), nil))
	relaytest.Equal(t, "result of DeviceByIdentifier, ID", relaytest.Must(s.DeviceByIdentifier(t.Context(), 2, "tank {7}"))(t).ID, "d2")
}

func claimIsReleased(t *testing.T, s *Store) {
	for acct, devices := range map[relay.AccountID][]Device{
		1: {testDevice("d1", eui), testDevice("d2", "a84041d2c5182f02"), testDevice("d3", "shed")}, 2: {testDevice("d4", "70b3d5000001")},
	} {
		for _, d := range devices {
			relaytest.NoError(t, s.CreateDevice(t.Context(), acct, d, nil))
		}
	}
	list := func(prefix, after string, limit int) []Ownership {
		return relaytest.Must(s.Ownerships(t.Context(), prefix, after, limit))(t)
	}
	first, second, third := Ownership{Identifier: "70b3d5000001", Account: 2, DeviceID: "d4"},
		Ownership{Identifier: eui, Account: 1, DeviceID: "d1"}, Ownership{Identifier: "a84041d2c5182f02", Account: 1, DeviceID: "d2"}
	relaytest.Equal(t, "all claims", list("", "", 10), []Ownership{first, second, third})
	relaytest.Equal(t, "the claims of a prefix", list("a84041", "", 10), []Ownership{second, third})
	relaytest.Equal(t, "a page", list("a84041", eui, 1), []Ownership{third})
	relaytest.Equal(t, "a whole identifier", list(eui, "", 10), []Ownership{second})

	released, err := s.ReleaseOwnership(t.Context(), eui)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the released claim", released, second)
	if _, err := s.ReleaseOwnership(t.Context(), eui); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("released again: %v", err)
	}
	relaytest.NoError(t, s.CreateDevice(t.Context(), 2, testDevice("d5", eui), nil))
	relaytest.Equal(t, "the new claim", list(eui, "", 10), []Ownership{{Identifier: eui, Account: 2, DeviceID: "d5"}})
	relaytest.Equal(t, "the device of the first holder", relaytest.Must(s.DeviceByIdentifier(t.Context(), 1, eui))(t).ID, "d1")
	relaytest.NoError(t, s.DeleteDevice(t.Context(), 1, "d1")) // which leaves the claim of the other account
	relaytest.Equal(t, "the claim after the deletion", len(list(eui, "", 10)), 1)
}

func deviceLetsGo(t *testing.T, s *Store) {
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

// deviceStaysAway checks that a batch in progress does not restore a deleted device.
func deviceStaysAway(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", eui), nil), s.DeleteDevice(t.Context(), 1, "d1"),
		s.KeepFrames(t.Context(), 1, []RawFrame{testFrame("d1", 1)}))
	dbtest.WantKind(t, s.AddSensors(t.Context(), 1, "d1", []Sensor{testSensor("d1", "a")}), relay.KindNotFound)
	_, err := s.ChangeDevice(t.Context(), 1, "d1", func(d *Device) error { d.Name = "back"; return nil })
	dbtest.WantKind(t, err, relay.KindNotFound)
	_, _, err = s.PutMarker(t.Context(), 1, "d1", Marker{ID: "m"}, dbtest.At(0))
	dbtest.WantKind(t, err, relay.KindNotFound)
	if left := rowsOf(t, s, "d1"); left != 0 {
		t.Errorf("%d rows are left", left)
	}
}

func accountsAreApart(t *testing.T, s *Store) {
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
	won := make([]error, 8)
	for i := range won {
		wg.Go(func() {
			won[i] = []*Store{a, b}[i%2].CreateDevice(t.Context(), relay.AccountID(1+i/2%2), testDevice(fmt.Sprint("d", i), eui), nil)
		})
	}
	wg.Wait()
	wins := countSuccesses(t, won, relay.KindConflict)
	one, e1 := a.CountDevices(t.Context(), 1)
	two, e2 := b.CountDevices(t.Context(), 2)
	if wins != 1 || one+two != 1 || errors.Join(e1, e2) != nil {
		t.Errorf("%d won, %d and %d devices", wins, one, two)
	}
}

// countSuccesses counts the calls that succeeded; the others must have failed with a kind
// of error.
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
	dbtest.Together(10, func(i int) {
		_, err := s.ChangeDecoder(t.Context(), 1, "x", func(d *Decoder) error {
			d.Sensors = append(d.Sensors, Mapping{Key: fmt.Sprint(i)})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	if d, err := s.Decoder(t.Context(), 1, "x"); err != nil || len(d.Sensors) != 10 {
		t.Errorf("%d mappings, %v", len(d.Sensors), err)
	}
}

func changeRefused(t *testing.T, s *Store) {
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
		t.Fatalf("result of Sensors: %d results, want %d", len(got), 2)
	}
	relaytest.Equal(t, "result of Sensors, [0].Slope", got[0].Slope, 2)
	relaytest.Equal(t, "result of Sensors, [1].Key", got[1].Key, "b")
	changed, err := s.ChangeSensor(t.Context(), 1, "d1", "b", func(x *Sensor) error { x.Offset = -3; return nil })
	got, _ = s.Sensors(t.Context(), 1, "d1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of Sensors, changed.Offset", changed.Offset, -3)
	relaytest.Equal(t, "result of Sensors, [1].Offset", got[1].Offset, -3)
}

func devicesLoad(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", eui), []Sensor{testSensor("d1", "a")}),
		s.CreateDevice(t.Context(), 1, testDevice("d2", "tank"), nil))
	got, err := s.Load(t.Context(), 1, []string{"tank", "nobody", eui})
	if err != nil || len(got) != 2 || got["tank"].Device.ID != "d2" || len(got[eui].Sensors) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	relaytest.Equal(t, "none asked for: number of results", len(relaytest.Must(s.Load(t.Context(), 1, nil))(t)), 0)
}

func versionsCount(t *testing.T, s *Store) {
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
		before, other := version(1), version(2)
		relaytest.NoError(t, change())
		if version(1) == before {
			t.Errorf("%s: the version stays %d", name, before)
		}
		if name != "a sensor type" && version(2) != other {
			t.Errorf("%s: the other account's version changed", name)
		}
	}
}

func sensorsOfADevice(t *testing.T, s *Store) {
	sensor := Sensor{ID: SensorID("d", "a"), DeviceID: "d", Key: "a", Slope: 2, RetentionDays: 3, SensorTypeID: "t"}
	if _, err := s.Sensors(t.Context(), 1, "d"); relay.KindOf(err) != relay.KindNotFound {
		t.Fatalf("a missing device: %v", err)
	}
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d", eui), []Sensor{sensor}), s.CreateDevice(t.Context(), 1, testDevice("e", "without sensors"), nil))
	relaytest.Equal(t, "sensors", relaytest.Must(s.Sensors(t.Context(), 1, "d"))(t), []Sensor{sensor})
	relaytest.Equal(t, "sensors of a device without any", relaytest.Must(s.Sensors(t.Context(), 1, "e"))(t), []Sensor{})
	if _, err := s.Sensors(t.Context(), 2, "d"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("another account's device: %v", err)
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
		t.Fatalf("result of SensorTypes: %d results, want %d", len(types), 1)
	}
	relaytest.Equal(t, "result of SensorTypes, [temperature].ImperialSlope", types["temperature"].ImperialSlope, 1.8)
	locations, err := s.Locations(t.Context(), 1)
	relaytest.NoError(t, err)
	if len(locations) != 2 {
		t.Fatalf("result of Locations: %d results, want %d", len(locations), 2)
	}
	relaytest.Equal(t, "result of Locations, [0].ID", locations[0].ID, "a")
	relaytest.Equal(t, "result of Locations, [1].Imported", locations[1].Imported, true)
	relaytest.Equal(t, "number of results of Decoders", len(relaytest.Must(s.Decoders(t.Context(), 1))(t)), 0)
}
