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

func TestAnEntryIsParsedAsItWasEncoded(t *testing.T) {
	for name, e := range map[string]Entry{
		"all fields":                       sampleEntry(),
		"a trace":                          {Body: []byte("x"), Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		"a trace and headers":              {Body: []byte("x"), Headers: map[string]string{"a": "b"}, Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		"an empty entry":                   {Body: []byte{}},
		"a binary body without an account": {Account: 0, Body: []byte{0, 255, 10}},
		"a negative account":               {Account: -3, Body: []byte("x")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseEntry(e.Append(nil), &Entry{})
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the entry", got, e)
		})
	}
}

func TestATruncatedEntryIsRefused(t *testing.T) {
	entry := sampleEntry()
	b := entry.Append(nil)
	for n := range len(b) - len(entry.Body) {
		if _, err := parseEntry(b[:n], &Entry{}); err == nil {
			t.Fatalf("truncated to %d of %d bytes: no error", n, len(b))
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
		parsed, err := parseEntry(e.Append(nil), &Entry{})
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the path after a round trip", parsed.Path, e.Path)
		relaytest.Equal(t, "the length of the body after a round trip", len(parsed.Body), len(e.Body))
	})
}

func TestEntriesOfOneSenderShareTheirStrings(t *testing.T) {
	previous := Entry{Account: 1, Source: "chirpstack-v4", Path: "/webhooks/lorawan", Query: "event=up", ContentType: "application/json", Body: []byte("{}")}
	encoded := previous.Append(nil)
	allocs := testing.AllocsPerRun(100, func() {
		e, err := parseEntry(encoded, &previous)
		relaytest.NoError(t, err)
		if e.Query != previous.Query {
			t.Fatalf("query = %q, want %q", e.Query, previous.Query)
		}
	})
	if allocs > 0 {
		t.Errorf("allocations for an entry like the previous one = %.0f, want 0", allocs)
	}
	changed := previous
	changed.Path, changed.Query = "/webhooks/lpwan", ""
	got, err := parseEntry(changed.Append(nil), &previous)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the path", got.Path, changed.Path)
	relaytest.Equal(t, "the query", got.Query, "")
}

func TestAnIDTakesOneAllocation(t *testing.T) {
	i := &Intake{node: "06h0hs6hkcne7b588srcc8g29c", kind: event.Uplink}
	var id string
	if allocs := testing.AllocsPerRun(100, func() { id = i.id(1 << 40) }); allocs > 1 {
		t.Errorf("allocations for %q = %.0f, want 1", id, allocs)
	}
	seq, ok := i.Sequence(id)
	relaytest.Equal(t, "the id is of this intake", ok, true)
	relaytest.Equal(t, "the sequence", seq, 1<<40)
}
