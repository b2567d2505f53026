package message

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/decoders/sms/smstest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// recorder is a store on SQLite and a Submitter that records saved orders and dispatched
// messages.
type recorder struct {
	store      *Store
	credit     *credit.Store
	batches    []OrderRecords
	dispatched []Message
	saveErrors []error // returned by the next saves, although they save the orders
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	database := dbtest.Open(t, db.Options{})
	rec := &recorder{store: NewStore(database), credit: credit.NewStore(database)}
	relaytest.NoError(t, rec.credit.Open(t.Context(), 1, 1_000_000, now()))
	save := rec.store.commits.Do
	rec.store.commits.Do = func(ctx context.Context, acct relay.AccountID, batches []*OrderRecords) []db.Answer[[]byte] {
		answers := save(ctx, acct, batches)
		for _, b := range batches {
			rec.batches = append(rec.batches, *b)
		}
		if len(rec.saveErrors) > 0 {
			answers[0].Err = rec.saveErrors[0]
			rec.saveErrors = rec.saveErrors[1:]
		}
		return answers
	}
	return rec
}

func (*recorder) Lease() time.Duration                  { return time.Minute }
func (r *recorder) Dispatch(ms []Message, _ time.Time)  { r.dispatched = append(r.dispatched, ms...) }
func (*recorder) FitsSevenBit(string, string) bool      { return true }
func (*recorder) AcceptsOriginator(string, string) bool { return true }

func now() time.Time { return time.Date(2026, 11, 20, 9, 34, 15, 0, time.UTC) }

func newService(t *testing.T, rec *recorder) *Service {
	t.Helper()
	s, err := New(Deps{Store: rec.store, Credit: rec.credit, Submitter: rec, Now: now, CheckURL: func(u string) error {
		if strings.Contains(u, "10.0.0.1") {
			return errors.New("the address is private")
		}
		return nil
	}})
	relaytest.NoError(t, err)
	return s
}

func order(s *Service, text string, destinations ...string) Order {
	return Order{Account: 1, Destinations: destinations, Body: s.Text(text, 0)}
}

// Preview and Send return the part counts of the table, which independent calculators confirm.
func TestPreviewAndSendAgree(t *testing.T) {
	rec := newRecorder(t)
	s := newService(t, rec)
	table := smstest.Texts()
	if len(table) < 60 {
		t.Fatalf("the table has %d texts, want 60 or more", len(table))
	}
	for _, tc := range table {
		t.Run(tc.Name, func(t *testing.T) {
			o := order(s, tc.Text, "447700900123", "447700900124", "447700900123")
			balance := relaytest.Must(rec.credit.Balance(t.Context(), 1))(t)
			preview, err := s.Preview(t.Context(), o)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the preview", preview, Preview{Parts: tc.Parts, Cost: int64(3 * tc.Parts), Credit: balance})
			rec.batches = nil
			sent, err := s.Send(t.Context(), o)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the cost of the order", sent.Cost, preview.Cost)
			relaytest.Equal(t, "the number of saved batches", len(rec.batches), 1)
			relaytest.Equal(t, "the credits of the batch", rec.batches[0].Credits(), preview.Cost)
			for i, m := range rec.batches[0].Messages {
				relaytest.Equal(t, "the encoded message", encodingOf(&m), encoding{Coding(tc.Coding), tc.Parts, tc.Text})
				relaytest.Equal(t, "the text of the entry", sent.Messages[i].Data, tc.Text)
			}
		})
	}
}

// encoding is the coding, the number of parts and the text of a message.
type encoding struct {
	Coding Coding
	Parts  int
	Text   string
}

func encodingOf(m *Message) encoding { return encoding{m.Coding, len(m.Parts), m.Text()} }

func TestAnOrderHasOneMessagePerDestination(t *testing.T) {
	rec := newRecorder(t)
	s := newService(t, rec)
	o := order(s, strings.Repeat("a", 200), "447700900123", "447700900124", "447700900123")
	o.Originator, o.Flash, o.Origin, o.IP = "Shop", true, "rest", "192.0.2.1"
	o.Report.URL = "https://example.com/?c=%code"
	sent, err := s.Send(t.Context(), o)
	relaytest.NoError(t, err)
	b := rec.batches[0]
	relaytest.Equal(t, "the end of the lease", b.Lease, now().Add(time.Minute))
	relaytest.Equal(t, "the number of dispatched messages", len(rec.dispatched), 3)
	relaytest.Equal(t, "the idempotency key", b.Key.Hash, "")
	references := make(map[byte]bool)
	for i, m := range b.Messages {
		want := Message{
			ID: sent.Messages[0].ID + ID(2*i), Account: 1, Originator: "Shop", Destination: o.Destinations[i], Coding: GSM, Flash: true,
			Report: o.Report, Origin: "rest", IP: "192.0.2.1", ReceivedAt: now(), ScheduledFor: now(), Parts: m.Parts,
		}
		relaytest.Equal(t, fmt.Sprint("message ", i), m, want)
		relaytest.Equal(t, "the id in the answer", sent.Messages[i].ID, m.ID)
		relaytest.Equal(t, "the state of the second part", m.Parts[1].State, Pending)
		relaytest.Equal(t, "the id of the second part", m.View(1).ID, m.ID+1)
		relaytest.Equal(t, "the text of the second part", m.View(1).Data, strings.Repeat("a", 47))
		if m.Destination == "447700900123" {
			references[m.Parts[0].UDH[3]] = true
		}
	}
	if len(references) != 2 {
		t.Errorf("references of two messages to one number: %v, want 2", references)
	}
}

func TestScheduledMessagesAreNotDispatched(t *testing.T) {
	rec := newRecorder(t)
	s := newService(t, rec)
	o := order(s, "hi", "447700900123")
	for name, tc := range map[string]struct {
		sendAt     time.Time
		scheduled  time.Time
		dispatched int
	}{
		"in an hour":     {now().Add(time.Hour), now().Add(time.Hour), 0},
		"an hour ago":    {now().Add(-time.Hour), now(), 1},
		"without a time": {time.Time{}, now(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			rec.dispatched = nil
			o.SendAt = tc.sendAt
			sent, err := s.Send(t.Context(), o)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the number of dispatched messages", len(rec.dispatched), tc.dispatched)
			relaytest.Equal(t, "the scheduled time", sent.Messages[0].Scheduled, tc.scheduled)
		})
	}
}

func TestInvalidOrdersAreRefused(t *testing.T) {
	rec := newRecorder(t)
	s := newService(t, rec)
	validOrder := func() Order { return order(s, "hi", "447700900123") }
	for _, tc := range []struct {
		name   string
		change func(*Order)
		want   string
	}{
		{"no destination", func(o *Order) { o.Destinations = nil }, "destinations"},
		{"a destination with a plus", func(o *Order) { o.Destinations = append(o.Destinations, "+447700900123") }, "destinations"},
		{"a destination with a leading zero", func(o *Order) { o.Destinations[0] = "07700900123" }, "destinations"},
		{"1001 destinations", func(o *Order) { o.Destinations = slices.Repeat(o.Destinations, 1001) }, "destinations"},
		{"too many parts", func(o *Order) {
			o.Destinations, o.Body = slices.Repeat(o.Destinations, 101), s.Text(strings.Repeat("a", 153*100), 0)
		}, "destinations"},
		{"an originator of 16 digits", func(o *Order) { o.Originator = "1234567890123456" }, "originator"},
		{"an originator of 12 letters", func(o *Order) { o.Originator = "abcdefghijkl" }, "originator"},
		{"an originator of blanks", func(o *Order) { o.Originator = "  " }, "originator"},
		{"an originator with a line end", func(o *Order) { o.Originator = "a\nb" }, "originator"},
		{"an originator of 16 digits with a plus", func(o *Order) { o.Originator = "+1234567890123456" }, "originator"},
		{"an originator in Cyrillic", func(o *Order) { o.Originator = "Банк" }, "originator"},
		{"a send time in two years", func(o *Order) { o.SendAt = now().AddDate(2, 0, 0) }, "send_time"},
		{"a report that is not a URL", func(o *Order) { o.Report.URL = "example.com" }, "dlr_url"},
		{"a report at a private address", func(o *Order) { o.Report.URL = "http://10.0.0.1/%msgid" }, "dlr_url"},
		{"a report with a placeholder in the host", func(o *Order) { o.Report.URL = "http://%dest.example.com/" }, "dlr_url"},
		{"a report with an unknown placeholder", func(o *Order) { o.Report.URL = "http://h/?x=%status" }, "dlr_url"},
		{"a report of more than 2048 characters", func(o *Order) { o.Report.URL = "http://h/" + strings.Repeat("a", 2048) }, "dlr_url"},
		{"a key with a line end", func(o *Order) { o.Key = "a\nb" }, "Idempotency-Key"},
		{"a key of 256 characters", func(o *Order) { o.Key = strings.Repeat("a", 256) }, "Idempotency-Key"},
		{"an empty message", func(o *Order) { o.Body = s.Text("", 0) }, "message"},
		{"a message that is not valid UTF-8", func(o *Order) { o.Body = s.Text("\xff", 0) }, "message"},
		{"a message of 256 parts", func(o *Order) { o.Body = s.Text(strings.Repeat("a", 153*255+1), 0) }, "message"},
		{"a limit of 256 parts", func(o *Order) { o.Body = s.Text("a", 256) }, "max_parts"},
		{"a replacing message of two parts", func(o *Order) { o.Replace, o.Body = true, s.Text(strings.Repeat("a", 161), 0) }, "replace"},
		{"UCS-2 data of one octet", func(o *Order) { o.Body = Octets(sms.Octets{Coding: sms.UCS2, Data: []byte{1}}) }, "data"},
		{"several invalid fields", func(o *Order) { o.Destinations, o.Originator, o.Body = nil, "~~~~~~~~~~~~", s.Text("", 0) }, "destinations message originator"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := validOrder()
			tc.change(&o)
			_, err := s.Send(t.Context(), o)
			var names []string
			for name, reasons := range relay.FieldsOf(err) {
				names = append(names, name)
				for _, r := range reasons {
					if !strings.HasSuffix(r, ".") {
						t.Errorf("problem of %s = %q, want a full stop at the end", name, r)
					}
				}
			}
			slices.Sort(names)
			relaytest.Equal(t, "the kind of error", relay.KindOf(err), relay.KindInvalid)
			relaytest.Equal(t, "the fields with problems", strings.Join(names, " "), tc.want)
			if _, err := s.Preview(t.Context(), o); relay.KindOf(err) != relay.KindInvalid {
				t.Errorf("preview: %v", err)
			}
		})
	}
	relaytest.Equal(t, "the number of saved batches", len(rec.batches), 0)
}

func TestValidOriginatorsAreAccepted(t *testing.T) {
	s := newService(t, newRecorder(t))
	for _, originator := range []string{"", "1", "0", "123456789012345", "Shop", "Shop24", "abcdefghijk", "ÄÖÜäöüñÑéà", "ΔΦΓΛΩ",
		"My Shop", "shop.com", "A&B", "+447700900123", "+123456789012345", "+", "+Plus", "a@b", "[€uro]", "12 34"} {
		o := order(s, "hi", "447700900123")
		if o.Originator = originator; len(s.Check(o)) > 0 {
			t.Errorf("problems of originator %q = %v, want none", originator, s.Check(o))
		}
	}
}

// network is a Submitter whose carrier for numbers with the prefix 44 sends Latin-1 instead of
// the GSM alphabet and accepts only digits as originator.
type network struct{ *recorder }

func (network) FitsSevenBit(number, text string) bool {
	return !strings.HasPrefix(number, "44") || !strings.ContainsAny(text, "€Ω")
}

func (network) AcceptsOriginator(number, originator string) bool {
	return !strings.HasPrefix(number, "44") || strings.Trim(originator, "0123456789") == ""
}

// A number with a plus sign and the same number without are one originator, also for
// replacing messages.
func TestAnOriginatorIsStoredWithoutPlus(t *testing.T) {
	rec := newRecorder(t)
	s := newService(t, rec)
	o := order(s, "hi", "447700900123")
	o.Originator = "+447700900999"
	sent, err := s.Send(t.Context(), o)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the source in the answer", sent.Messages[0].Source, "447700900999")
	relaytest.Equal(t, "the saved originator", rec.batches[0].Messages[0].Originator, "447700900999")
}

func TestOriginatorsRefusedByACarrier(t *testing.T) {
	rec := newRecorder(t)
	s := newService(t, rec)
	s.deps.Submitter = network{rec}
	for _, tc := range []struct {
		originator, destinations string
		ok                       bool
	}{{"Shop", "49170123456", true}, {"Shop", "49170123456 447700900123", false}, {"+4477", "447700900123", true}, {"", "447700900123", true}} {
		o := order(s, "hi", strings.Fields(tc.destinations)...)
		o.Originator = tc.originator
		if got := s.Check(o); len(got) == 0 != tc.ok || !tc.ok && len(got["originator"]) != 1 {
			t.Errorf("problems of originator %q to %s = %v, want accepted %t", tc.originator, tc.destinations, got, tc.ok)
		}
	}
}

// Preview and Send choose a coding that the carriers of all destinations support.
func TestTextsThatDoNotFitSevenBitsAreSentAsUCS2(t *testing.T) {
	for _, tc := range []struct {
		text, destinations string
		octets             bool
		coding             Coding
		parts              int
	}{
		{"Price 5€", "447700900123", false, UCS2, 1},
		{"Price 5€", "49170123456", false, GSM, 1},
		{"Price 5€", "49170123456 447700900123", false, UCS2, 1},
		{"Price 5", "447700900123", false, GSM, 1},
		{"€" + strings.Repeat("a", 158), "447700900123", false, UCS2, 3},
		{"€" + strings.Repeat("a", 158), "49170123456", false, GSM, 1},
		{"Ω", "447700900123", true, UCS2, 1},
		{"Ω", "49170123456", true, GSM, 1},
	} {
		rec := newRecorder(t)
		s := newService(t, rec)
		s.deps.Submitter = network{rec}
		o := order(s, tc.text, strings.Fields(tc.destinations)...)
		if tc.octets {
			o.Body = Octets(sms.Octets{Coding: sms.GSM, Data: []byte{0x15}})
		}
		label := fmt.Sprintf("%.10q to %s: ", tc.text, tc.destinations)
		preview, err := s.Preview(t.Context(), o)
		relaytest.NoError(t, err)
		relaytest.Equal(t, label+"the parts of the preview", preview.Parts, tc.parts)
		sent, err := s.Send(t.Context(), o)
		relaytest.NoError(t, err)
		relaytest.Equal(t, label+"the cost of the order", sent.Cost, preview.Cost)
		for _, m := range rec.batches[0].Messages {
			relaytest.Equal(t, label+"the encoded message", encodingOf(&m), encoding{tc.coding, tc.parts, tc.text})
		}
	}
}

func TestAByteOrderMarkIsDropped(t *testing.T) {
	rec := newRecorder(t)
	s := newService(t, rec)
	sent, err := s.Send(t.Context(), order(s, "\ufeffhi", "447700900123"))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the text in the answer", sent.Messages[0].Data, "hi")
	relaytest.Equal(t, "the coding", rec.batches[0].Messages[0].Coding, GSM)
}

func TestTextsAreTruncated(t *testing.T) {
	rec := newRecorder(t)
	s := newService(t, rec)
	for _, tc := range []struct{ maxParts, parts, length int }{{1, 1, 160}, {2, 2, 306}, {255, 3, 400}} {
		o := order(s, "", "447700900123")
		o.Body = s.Text(strings.Repeat("a", 400), tc.maxParts)
		sent, err := s.Send(t.Context(), o)
		relaytest.NoError(t, err)
		relaytest.Equal(t, fmt.Sprintf("the cost of at most %d parts", tc.maxParts), sent.Cost, int64(tc.parts))
		relaytest.Equal(t, fmt.Sprintf("the length of at most %d parts", tc.maxParts), len(sent.Messages[0].Data), tc.length)
	}
}

func TestOctetsAreReturnedInHex(t *testing.T) {
	rec := newRecorder(t)
	s := newService(t, rec)
	o := order(s, "", "447700900123")
	o.Body = Octets(sms.Octets{Coding: sms.Binary, Header: sms.UDH{{ID: 5, Data: []byte{0x23, 0xF4, 0, 0}}}, Data: []byte{0, 0xFF}})
	sent, err := s.Send(t.Context(), o)
	relaytest.NoError(t, err)
	part := rec.batches[0].Messages[0].Parts[0]
	relaytest.Equal(t, "the data in the answer", sent.Messages[0].Data, "00ff")
	relaytest.Equal(t, "the length of the UDH", len(part.UDH), 7)
	relaytest.Equal(t, "the text of the part", part.Text, "")
}

func TestAKeyIsStoredWithTheHashOfItsOrder(t *testing.T) {
	rec := newRecorder(t)
	s := newService(t, rec)
	idempotencyKey := func(change func(*Order)) IdempotencyKey {
		t.Helper()
		o := order(s, strings.Repeat("é", 200), "447700900123")
		o.Key = "k"
		change(&o)
		if _, err := s.Send(t.Context(), o); err != nil && relay.FieldsOf(err)["Idempotency-Key"] == nil {
			t.Fatal(err)
		}
		return rec.batches[len(rec.batches)-1].Key
	}
	key, repeated := idempotencyKey(func(*Order) {}), idempotencyKey(func(o *Order) { o.IP = "192.0.2.7" })
	relaytest.Equal(t, "the key of the same order", repeated.Hash, key.Hash)
	relaytest.Equal(t, "the hash of the same order", repeated.OrderHash, key.OrderHash)
	relaytest.Equal(t, "the storage time of the key", key.Retention, 24*time.Hour)
	if strings.Contains(key.Hash, "k") && len(key.Hash) < 64 {
		t.Errorf("the key %q is not hashed", key.Hash)
	}
	for name, change := range map[string]func(*Order){
		"destinations": func(o *Order) { o.Destinations[0] += "4" },
		"text":         func(o *Order) { o.Body = s.Text("x", 0) },
		"truncation":   func(o *Order) { o.Body = s.Text(strings.Repeat("é", 200), 1) },
		"originator":   func(o *Order) { o.Originator = "x" },
		"time":         func(o *Order) { o.SendAt = now().Add(time.Hour) },
		"report":       func(o *Order) { o.Report.URL = "https://h/" },
		"flash":        func(o *Order) { o.Flash = true },
		"interface":    func(o *Order) { o.Origin = "soap" },
	} {
		if changed := idempotencyKey(change); changed.OrderHash == key.OrderHash || changed.Hash != key.Hash {
			t.Errorf("another %s does not change the hash of the order", name)
		}
	}
	short := idempotencyKey(func(o *Order) { o.Body = s.Text("x", 0) })
	if changed := idempotencyKey(func(o *Order) { o.Replace, o.Body = true, s.Text("x", 0) }); changed.OrderHash == short.OrderHash {
		t.Error("another replace does not change the hash of the order")
	}
}

func TestAnOrderWithAKeyIsRepeated(t *testing.T) {
	rec := newRecorder(t)
	s := newService(t, rec)
	o := order(s, "x", "447700900123")
	o.Key = "k"
	first := relaytest.Must(s.Send(t.Context(), o))(t)
	relaytest.Equal(t, "whether the first is a repetition", first.Repeated, false)
	first.Repeated = true
	relaytest.Equal(t, "the answer to the repeated order", relaytest.Must(s.Send(t.Context(), o))(t), first)
	relaytest.Equal(t, "the number of dispatched messages", len(rec.dispatched), 1)
	relaytest.Equal(t, "the credit", relaytest.Must(rec.credit.Balance(t.Context(), 1))(t), 999_999)
	o.Body = s.Text("y", 0)
	if _, err := s.Send(t.Context(), o); len(relay.FieldsOf(err)["Idempotency-Key"]) != 1 {
		t.Errorf("error for the key of another order: %v", err)
	}
}

func TestASaveWithALostAnswerIsRepeated(t *testing.T) {
	rec := newRecorder(t)
	s := newService(t, rec)
	down := relay.Errorf(relay.KindUnavailable, "no answer")
	rec.saveErrors = []error{down}
	_, err := s.Send(t.Context(), order(s, "hi", "447700900123"))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of saves", len(rec.batches), 2)
	relaytest.Equal(t, "the message id of the second save", rec.batches[1].Messages[0].ID, rec.batches[0].Messages[0].ID)
	relaytest.Equal(t, "the credit", relaytest.Must(rec.credit.Balance(t.Context(), 1))(t), 999_999)
	rec.saveErrors = []error{down, down}
	_, err = s.Send(t.Context(), order(s, "hi", "447700900123"))
	relaytest.Equal(t, "the kind of error after two lost answers", relay.KindOf(err), relay.KindUnavailable)
	relaytest.Equal(t, "the number of dispatched messages", len(rec.dispatched), 1)
	poor := order(s, "hi", "447700900123")
	poor.Account = 2
	_, err = s.Send(t.Context(), poor)
	relaytest.Equal(t, "the kind of error without credit", relay.KindOf(err), relay.KindNoCredit)
	relaytest.Equal(t, "the number of saves: one without credit, not repeated", len(rec.batches), 5)
}
