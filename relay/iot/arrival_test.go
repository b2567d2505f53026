package iot_test

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestSampleTime(t *testing.T) {
	received := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	ago := func(d time.Duration) time.Time { return received.Add(-d) }
	const year = 365 * 24 * time.Hour
	cases := []struct {
		name            string
		sample, network time.Time
		want            time.Time
		note            string
	}{
		{"without times the time of receipt", time.Time{}, time.Time{}, received, ""},
		{"the network's time without the device's", time.Time{}, ago(time.Second), ago(time.Second), ""},
		{"the device's time is preferred to the network's", ago(time.Hour), ago(time.Second), ago(time.Hour), ""},
		{"a sample nearly ten years old", ago(10*year - time.Second), time.Time{}, ago(10*year - time.Second), ""},
		{"a sample ten years old: the network's time", ago(10 * year), ago(time.Second), ago(time.Second), "time 2016-03-03T11:00:00Z is not plausible; the network's time is used"},
		{"a sample nearly a day ahead", ago(time.Second - 24*time.Hour), time.Time{}, ago(time.Second - 24*time.Hour), ""},
		{"a sample a day ahead: the time of receipt", ago(-24 * time.Hour), time.Time{}, received, "time 2026-03-02T11:00:00Z is not plausible; the time of receipt is used"},
		{"both times in 1970: the time of receipt", time.Unix(1, 0), time.Unix(2, 0), received, "time 1970-01-01T00:00:01Z is not plausible; the time of receipt is used, time 1970-01-01T00:00:02Z is not plausible; the time of receipt is used"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			f := decoders.Frame{SampleTime: tc.sample, NetworkTime: tc.network}
			sampledAt, notes := iot.SampleTime(&f, received)
			relaytest.Equal(t, "the time", sampledAt, tc.want)
			relaytest.Equal(t, "whether the time is in UTC", sampledAt.Location() == time.UTC, true)
			relaytest.Equal(t, "the notes", strings.Join(notes, ", "), tc.note)
		})
	}
}

func TestNormalizeIdentifier(t *testing.T) {
	for _, tc := range []struct {
		name, identifier, want string
		unique                 bool
	}{
		{"a devEUI with hyphens", "24-E1-24-13-6B-50-22-17", eui, true},
		{"a MAC address with colons", " AA:bb:CC:dd:EE:ff ", "aabbccddeeff", true},
		{"a MAC address with dots", "aabb.ccdd.ee01", "aabbccddee01", true},
		{"a devEUI with dots", "24E1.2413.6B50.2217", eui, true},
		{"an IP address is not a MAC address", "192.168.100.101", "192.168.100.101", false},
		{"a normalized MAC address", "aabbccddeeff", "aabbccddeeff", true},
		{"another identifier keeps its case", " Tank 7 ", "Tank 7", false},
		{"thirteen digits", "aabbccddeeff0", "aabbccddeeff0", false},
		{"an empty identifier", "", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, unique := iot.NormalizeIdentifier(tc.identifier)
			if got != tc.want || unique != tc.unique {
				t.Errorf("got %q, unique %v; want %q, unique %v", got, unique, tc.want, tc.unique)
			}
		})
	}
}

func FuzzNormalizeIdentifier(f *testing.F) {
	f.Add("24-E1-24-13-6B-50-22-17")
	f.Add("AA:bb:CC:dd:EE:ff")
	f.Add(" \x00 ")
	f.Fuzz(func(t *testing.T, s string) {
		got, unique := iot.NormalizeIdentifier(s)
		if normalizedTwice, same := iot.NormalizeIdentifier(got); normalizedTwice != got || same != unique {
			t.Fatalf("%q became %q, then %q", s, got, normalizedTwice)
		}
	})
}
