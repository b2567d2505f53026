package intake

import (
	"testing"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
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
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the entry", got, e)
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
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the path after a round trip", again.Path, e.Path)
		relaytest.Equal(t, "the length of the body after a round trip", len(again.Body), len(e.Body))
	})
}

func TestEntriesOfOneSenderShareTheirTexts(t *testing.T) {
	one := Entry{Account: 1, Source: "chirpstack-v4", Path: "/webhooks/lorawan", Query: "event=up", ContentType: "application/json", Body: []byte("{}")}
	encoded := one.Append(nil)
	allocs := testing.AllocsPerRun(100, func() {
		e, err := parseEntry(encoded, &one)
		relaytest.NoError(t, err)
		if e.Query != one.Query {
			t.Fatalf("the query %q, want %q", e.Query, one.Query)
		}
	})
	if allocs > 0 {
		t.Errorf("%.0f allocations for an entry like the one before it, want none", allocs)
	}
	other := one
	other.Path, other.Query = "/webhooks/lpwan", ""
	got, err := parseEntry(other.Append(nil), &one)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the path", got.Path, other.Path)
	relaytest.Equal(t, "the query", got.Query, "")
}

func TestAnIDIsOneAllocation(t *testing.T) {
	i := &Intake{node: "06h0hs6hkcne7b588srcc8g29c", kind: event.Uplink}
	var id string
	if allocs := testing.AllocsPerRun(100, func() { id = i.id(1 << 40) }); allocs > 1 {
		t.Errorf("%.0f allocations for %q, want 1", allocs, id)
	}
	seq, ok := i.Sequence(id)
	relaytest.Equal(t, "the id is known", ok, true)
	relaytest.Equal(t, "its sequence", seq, 1<<40)
}
