package redisstore

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/redisstore/redistest"
)

func TestIoT(t *testing.T) {
	onEvery(t, testIoT)
	t.Run("behind sentinels", func(t *testing.T) {
		set := redistest.StartSentinels(t)
		testIoT(t, func(t *testing.T) *DB {
			db := openURL(t, set.URL)
			flush(t, db)
			return db
		})
	})
}

func testIoT(t *testing.T, open func(t *testing.T) *DB) {
	for name, test := range map[string]func(*testing.T, *IoT){
		"a device comes back as it was saved":                         deviceComesBack,
		"an identifier belongs to one account when it is a devEUI":    identifierIsClaimed,
		"another identifier is each account's own":                    identifierIsOwn,
		"a deleted device lets go of its identifier":                  deviceLetsGo,
		"a deleted device stays away":                                 deviceStaysAway,
		"two accounts see nothing of each other":                      accountsAreApart,
		"of two that create one device one wins":                      creationRace,
		"no change of a decoder is lost when ten are made at once":    decoderRace,
		"what change refuses is not saved":                            changeRefused,
		"a sensor keeps its key when it is added again":               sensorAddedAgain,
		"devices load by identifier with their sensors":               devicesLoad,
		"every change counts the version up":                          versionsCount,
		"a frame belongs to the record that brought it first":         claimsHold,
		"a claim ends with its window":                                claimsEnd,
		"3,000 frames are claimed in their order":                     manyClaims,
		"the latest value never goes backwards":                       latestGoesForward,
		"latest values of many devices are kept apart, texts as well": latestOfMany,
		"what is known of a device's readings comes in one go":        overviews,
		"what posts tell of a frame is joined in any order":           toldJoins,
		"when a device was heard last never goes backwards":           heardGoesForward,
		"sensor types and locations come, go and are listed":          typesAndLocations,
		"a deleted device takes with it all that is kept of it":       deviceTakesAllWithIt,
		"a late deletion takes nothing from who came after":           deletionOfTheFirst,
		"the sensors of an account are counted":                       seriesAreCounted,
		"a sensor remembers the types it had":                         sensorsAreRetyped,
		"calibration and type do not lose one another":                retypeRace,
		"the latest value keeps the type it was read as":              latestKeepsItsType,
		"sensors of deleted devices are remembered":                   retiredSensorsAreListed,
		"an event marker is made once and then changed":               markersAreKept,
		"a device has so many event markers":                          markersHaveAnEnd,
		"raw frames are kept, each once":                              framesAreKept,
		"raw frames have an end in number and in time":                framesHaveAnEnd,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t).IoT()) })
	}
}

const eui = "a84041d2c5182f01"

func deviceOf(id, identifier string) iot.Device {
	return iot.Device{ID: id, Name: "n-" + id, Identifier: identifier, Type: iot.LoRaWAN, Longitude: new(-0.125), CreatedAt: at(0), UpdatedAt: at(0)}
}

func sensorOf(device, key string) iot.Sensor {
	return iot.Sensor{ID: iot.SensorID(device, key), DeviceID: device, Key: key, Name: key, Slope: 1, SensorTypeID: "temperature", CreatedAt: at(0), UpdatedAt: at(0)}
}

func mustDo(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, want relay.Kind) {
	t.Helper()
	if err == nil || relay.KindOf(err) != want {
		t.Fatalf("%v, want %s", err, want)
	}
}

func deviceComesBack(t *testing.T, s *IoT) {
	want := deviceOf("d1", eui)
	mustDo(t, s.CreateDevice(t.Context(), 1, want, []iot.Sensor{sensorOf("d1", "b"), sensorOf("d1", "a")}))
	got, err := s.Device(t.Context(), 1, "d1")
	if err != nil || *got.Longitude != -0.125 || got.Name != want.Name || !got.CreatedAt.Equal(at(0)) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.DeviceByIdentifier(t.Context(), 1, eui); err != nil || got.ID != "d1" {
		t.Errorf("by identifier %+v, %v", got, err)
	}
	sensors, err := s.Sensors(t.Context(), 1, "d1")
	if err != nil || len(sensors) != 2 || sensors[0].Key != "a" || !reflect.DeepEqual(sensors[1], sensorOf("d1", "b")) {
		t.Errorf("sensors %+v, %v", sensors, err)
	}
	later := deviceOf("d0", "x")
	later.CreatedAt = at(1)
	mustDo(t, s.CreateDevice(t.Context(), 1, later, nil))
	all, err := s.Devices(t.Context(), 1)
	if n, _ := s.CountDevices(t.Context(), 1); err != nil || n != 2 || len(all) != 2 || all[0].ID != "d1" {
		t.Errorf("%d devices: %+v, %v", n, all, err)
	}
}

func identifierIsClaimed(t *testing.T, s *IoT) {
	for _, identifier := range []string{eui, "aabbccddeeff"} {
		mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d-"+identifier, identifier), nil))
		wantKind(t, s.CreateDevice(t.Context(), 1, deviceOf("again", identifier), nil), relay.KindConflict)
		wantKind(t, s.CreateDevice(t.Context(), 2, deviceOf("theirs", identifier), nil), relay.KindConflict)
	}
	if n, err := s.CountDevices(t.Context(), 2); n != 0 || err != nil {
		t.Errorf("the other account has %d devices, %v", n, err)
	}
}

func identifierIsOwn(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", "tank {7}"), nil),
		s.CreateDevice(t.Context(), 2, deviceOf("d2", "tank {7}"), nil))
	if d, err := s.DeviceByIdentifier(t.Context(), 2, "tank {7}"); err != nil || d.ID != "d2" {
		t.Errorf("%+v, %v", d, err)
	}
}

func deviceLetsGo(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", eui), []iot.Sensor{sensorOf("d1", "a")}),
		s.SetLatest(t.Context(), 1, []iot.Point{pointOf("d1", "a", 0, 1)}))
	wantKind(t, s.DeleteDevice(t.Context(), 2, "d1"), relay.KindNotFound)
	mustDo(t, s.DeleteDevice(t.Context(), 1, "d1"))
	wantKind(t, s.DeleteDevice(t.Context(), 1, "d1"), relay.KindNotFound)
	if latest, err := s.Latest(t.Context(), 1, "d1"); len(latest) != 0 || err != nil {
		t.Errorf("latest %+v, %v", latest, err)
	}
	mustDo(t, s.CreateDevice(t.Context(), 2, deviceOf("d2", eui), nil))
}

// deviceStaysAway holds that work in flight does not bring a deleted device back.
func deviceStaysAway(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", eui), nil), s.DeleteDevice(t.Context(), 1, "d1"),
		s.SetLatest(t.Context(), 1, []iot.Point{pointOf("d1", "a", 0, 1)}),
		s.AddSensors(t.Context(), 1, "d1", []iot.Sensor{sensorOf("d1", "a")}))
	_, err := s.ChangeDevice(t.Context(), 1, "d1", func(d *iot.Device) error { d.Name = "back"; return nil })
	wantKind(t, err, relay.KindNotFound)
	latest, err := s.Latest(t.Context(), 1, "d1")
	sensors, err2 := s.Sensors(t.Context(), 1, "d1")
	if len(latest)+len(sensors) > 0 || errors.Join(err, err2) != nil {
		t.Errorf("left: %+v %+v, %v", latest, sensors, errors.Join(err, err2))
	}
}

func accountsAreApart(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", eui), []iot.Sensor{sensorOf("d1", "a")}),
		s.CreateDecoder(t.Context(), 1, iot.Decoder{ID: "x", Name: "mine"}),
		s.PutLocation(t.Context(), 1, iot.Location{ID: "l"}),
		s.SetLatest(t.Context(), 1, []iot.Point{pointOf("d1", "a", 0, 1)}))
	_, byID := s.Device(t.Context(), 2, "d1")
	_, byName := s.DeviceByIdentifier(t.Context(), 2, eui)
	_, decoder := s.Decoder(t.Context(), 2, "x")
	_, changed := s.ChangeDecoder(t.Context(), 2, "x", func(*iot.Decoder) error { return nil })
	_, sensor := s.ChangeSensor(t.Context(), 2, "d1", "a", func(*iot.Sensor) error { return nil })
	for _, err := range []error{byID, byName, decoder, changed, sensor} {
		wantKind(t, err, relay.KindNotFound)
	}
	devices, e1 := s.Devices(t.Context(), 2)
	decoders, e2 := s.Decoders(t.Context(), 2)
	locations, e3 := s.Locations(t.Context(), 2)
	latest, e4 := s.Latest(t.Context(), 2, "d1")
	loaded, e5 := s.Load(t.Context(), 2, []string{eui})
	mustDo(t, e1, e2, e3, e4, e5)
	if len(devices)+len(decoders)+len(locations)+len(latest)+len(loaded) > 0 {
		t.Error(devices, decoders, locations, latest, loaded)
	}
}

func creationRace(t *testing.T, s *IoT) {
	var wg sync.WaitGroup
	won := make([]error, 8)
	for i := range won {
		wg.Go(func() {
			won[i] = s.CreateDevice(t.Context(), account.ID(1+i%2), deviceOf(fmt.Sprint("d", i), eui), nil)
		})
	}
	wg.Wait()
	wins := 0
	for _, err := range won {
		if err == nil {
			wins++
		} else if relay.KindOf(err) != relay.KindConflict {
			t.Error(err)
		}
	}
	one, e1 := s.CountDevices(t.Context(), 1)
	two, e2 := s.CountDevices(t.Context(), 2)
	if wins != 1 || one+two != 1 || errors.Join(e1, e2) != nil {
		t.Errorf("%d won, %d and %d devices", wins, one, two)
	}
}

func decoderRace(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDecoder(t.Context(), 1, iot.Decoder{ID: "x"}))
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			_, err := s.ChangeDecoder(t.Context(), 1, "x", func(d *iot.Decoder) error {
				d.Sensors = append(d.Sensors, iot.Mapping{Key: fmt.Sprint(i)})
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if d, err := s.Decoder(t.Context(), 1, "x"); err != nil || len(d.Sensors) != 10 {
		t.Errorf("%d mappings, %v", len(d.Sensors), err)
	}
}

func changeRefused(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDecoder(t.Context(), 1, iot.Decoder{ID: "x", Name: "old"}))
	refusal := errors.New("no")
	_, err := s.ChangeDecoder(t.Context(), 1, "x", func(d *iot.Decoder) error { d.Name = "new"; return refusal })
	if d, _ := s.Decoder(t.Context(), 1, "x"); !errors.Is(err, refusal) || d.Name != "old" {
		t.Errorf("%+v, %v", d, err)
	}
}

func sensorAddedAgain(t *testing.T, s *IoT) {
	calibrated := sensorOf("d1", "a")
	calibrated.Slope = 2
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", eui), []iot.Sensor{calibrated}),
		s.AddSensors(t.Context(), 1, "d1", []iot.Sensor{sensorOf("d1", "a"), sensorOf("d1", "b")}))
	got, err := s.Sensors(t.Context(), 1, "d1")
	if err != nil || len(got) != 2 || got[0].Slope != 2 || got[1].Key != "b" {
		t.Errorf("%+v, %v", got, err)
	}
	changed, err := s.ChangeSensor(t.Context(), 1, "d1", "b", func(x *iot.Sensor) error { x.Offset = -3; return nil })
	got, _ = s.Sensors(t.Context(), 1, "d1")
	if err != nil || changed.Offset != -3 || got[1].Offset != -3 {
		t.Errorf("%+v, %v", got, err)
	}
}

func devicesLoad(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", eui), []iot.Sensor{sensorOf("d1", "a")}),
		s.CreateDevice(t.Context(), 1, deviceOf("d2", "tank"), nil))
	got, err := s.Load(t.Context(), 1, []string{"tank", "nobody", eui})
	if err != nil || len(got) != 2 || got["tank"].Device.ID != "d2" || len(got[eui].Sensors) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.Load(t.Context(), 1, nil); len(got) != 0 || err != nil {
		t.Errorf("none asked for: %+v, %v", got, err)
	}
}

func versionsCount(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", eui), []iot.Sensor{sensorOf("d1", "a")}))
	version := func(acct account.ID) int64 {
		v, err := s.Versions(t.Context(), []account.ID{acct, 7})
		mustDo(t, err)
		return v[acct]
	}
	for name, change := range map[string]func() error{
		"a new decoder": func() error { return s.CreateDecoder(t.Context(), 1, iot.Decoder{ID: "x"}) },
		"a location":    func() error { return s.PutLocation(t.Context(), 1, iot.Location{ID: "l"}) },
		"a sensor type": func() error { return s.PutSensorType(t.Context(), iot.SensorType{ID: "t"}) },
		"a device": func() error {
			_, err := s.ChangeDevice(t.Context(), 1, "d1", func(d *iot.Device) error { d.Name = "new"; return nil })
			return err
		},
		"a sensor": func() error {
			_, err := s.ChangeSensor(t.Context(), 1, "d1", "a", func(x *iot.Sensor) error { x.Slope++; return nil })
			return err
		},
	} {
		before, other := version(1), version(2)
		mustDo(t, change())
		if version(1) == before {
			t.Errorf("%s: the version stays %d", name, before)
		}
		if name != "a sensor type" && version(2) != other {
			t.Errorf("%s: the other account's version changed", name)
		}
	}
}
