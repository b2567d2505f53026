package intake

import (
	"reflect"
	"testing"

	"github.com/penstock/penstock/relay/event"
)

func sampleEntry() Entry {
	return Entry{
		Account: 7, Source: "kannel", Path: "/inbound/sms/kannel", Query: "from=%2B44&text=h%C3%A9",
		ContentType: "application/json", Waiter: "w1",
		Headers: map[string]string{"x-dt-signature": "abc"}, Body: []byte(`{"a":1}`),
	}
}

func TestEntryComesBackAsItWasWritten(t *testing.T) {
	for name, e := range map[string]Entry{
		"a full one":            sampleEntry(),
		"one with a trace":      {Body: []byte("x"), Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		"a trace and headers":   {Body: []byte("x"), Headers: map[string]string{"a": "b"}, Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		"an empty one":          {Body: []byte{}},
		"no account and binary": {Account: 0, Body: []byte{0, 255, 10}},
		"a negative account":    {Account: -3, Body: []byte("x")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseEntry(e.Append(nil), &Entry{})
			if err != nil || !reflect.DeepEqual(got, e) {
				t.Errorf("got %+v, %v; want %+v", got, err, e)
			}
		})
	}
}

func TestEntryCutShortIsRefusedOrShorter(t *testing.T) {
	whole := sampleEntry()
	b := whole.Append(nil)
	for n := range len(b) - len(whole.Body) {
		if _, err := parseEntry(b[:n], &Entry{}); err == nil {
			t.Fatalf("cut at %d of %d: no error", n, len(b))
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	e := sampleEntry()
	f.Add(e.Append(nil))
	f.Add([]byte{})
	f.Add([]byte{2, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := parseEntry(b, &Entry{})
		if err != nil {
			return
		}
		again, err := parseEntry(e.Append(nil), &Entry{})
		if err != nil || len(again.Body) != len(e.Body) || again.Path != e.Path {
			t.Fatalf("%x: parsed as %+v, again as %+v, %v", b, e, again, err)
		}
	})
}

func TestEntriesOfOneSenderShareTheirTexts(t *testing.T) {
	one := Entry{Account: 1, Source: "chirpstack-v4", Path: "/webhooks/lorawan", Query: "event=up", ContentType: "application/json", Body: []byte("{}")}
	encoded := one.Append(nil)
	allocs := testing.AllocsPerRun(100, func() {
		if e, err := parseEntry(encoded, &one); err != nil || e.Query != one.Query {
			t.Fatal(e, err)
		}
	})
	if allocs > 0 {
		t.Errorf("%.0f allocations for an entry like the one before it, want none", allocs)
	}
	other := one
	other.Path, other.Query = "/webhooks/lpwan", ""
	if got, err := parseEntry(other.Append(nil), &one); err != nil || got.Path != other.Path || got.Query != "" {
		t.Errorf("got %+v, %v, want %+v", got, err, other)
	}
}

func TestAnIDIsOneAllocation(t *testing.T) {
	i := &Intake{node: "06h0hs6hkcne7b588srcc8g29c", kind: event.Uplink}
	var id string
	if allocs := testing.AllocsPerRun(100, func() { id = i.id(1 << 40) }); allocs > 1 {
		t.Errorf("%.0f allocations for %q, want 1", allocs, id)
	}
	if seq, ok := i.Sequence(id); !ok || seq != 1<<40 {
		t.Errorf("the sequence of %q is %d, %v", id, seq, ok)
	}
}
