package carrier

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// postJSON posts fields to the json adapter.
func (f *flow) postJSON(t *testing.T, fields map[string]any) {
	t.Helper()
	body, err := json.Marshal(fields)
	relaytest.NoError(t, err)
	if status, got, _ := call(t, f.app, "POST", "/inbound/sms/json", "carrier-1", string(body)); status != 200 {
		t.Fatalf("answer to %s = %d %s, want 200", body, status, got)
	}
}

// newParts splits a text into parts of size octets with a UDH. A part may end within a character.
func newParts(id, from, text string, reference uint16, longReference bool, size int) (parts []map[string]any) {
	octets := sms.EncodeUCS2(text)
	total := (len(octets) + size - 1) / size
	for n := range total {
		udh := []byte{5, 0, 3, byte(reference), byte(total), byte(n + 1)}
		if longReference {
			udh = []byte{6, 8, 4, byte(reference >> 8), byte(reference), byte(total), byte(n + 1)}
		}
		parts = append(parts, map[string]any{
			"id": fmt.Sprintf("%s-%d", id, n), "from": from, "to": "447860000001", "coding": 16,
			"data": hex.EncodeToString(octets[n*size : min((n+1)*size, len(octets))]), "udh": hex.EncodeToString(udh),
		})
	}
	return parts
}

// toMessages returns a relay that sends messages to the URL parameter.
func toMessages(parameter string) inbound.Relay {
	return relayTo(1, inbound.VirtualNumber, "v1", "447860000001", inbound.HTTPGet, parameter)
}

// routeDue routes incomplete messages that are due and returns their number.
func (f *flow) routeDue(t *testing.T) int {
	t.Helper()
	n, err := f.service.RouteDue(t.Context())
	relaytest.NoError(t, err)
	return n
}

func TestPartsOfManyMessagesAreJoinedAcrossReplicas(t *testing.T) {
	database := dbtest.Shared(t).NewDatabase(t)
	replicas := []*flow{
		newReplica(t, recordstest.OpenURL(t, database), "n1", toMessages("http://vmn/?o=%orig&m=%msg&s=%stat")),
		newReplica(t, recordstest.OpenURL(t, database), "n2"),
	}
	var posts []map[string]any
	var want []string
	for i := range 60 {
		text := fmt.Sprintf("%d: 😀 é € %s", i, strings.Repeat("x😀", i%7))
		sender := fmt.Sprint("4477009", i/4) // each sender sends four messages with different references
		parts := newParts(fmt.Sprint("m", i), sender, text, uint16(i), i%2 == 0, 7+i%5)
		repetition := newParts(fmt.Sprint("repetition", i), sender, text, uint16(i), i%2 == 0, 7+i%5)
		posts = append(append(posts, parts...), repetition[i%len(repetition)])
		want = append(want, "http://vmn/?o="+sender+"&m="+escape(text)+"&s=1")
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(posts), func(i, j int) { posts[i], posts[j] = posts[j], posts[i] })
	for i, part := range posts {
		replicas[i%2].postJSON(t, part)
	}
	for _, f := range replicas {
		f.waitProcessed(t) // before routeDue, which routes messages with missing parts
	}
	var got []string
	for _, f := range replicas {
		f.clockOffset.Store(int64(time.Hour))
		f.routeDue(t) // repeated parts are not sent
		sent, repeated := f.targets()
		if repeated != 0 {
			t.Errorf("targets with several attempts = %d, want 0", repeated)
		}
		got = append(got, sent...)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("sent messages = %d, want %d\n%q\n%q", len(got), len(want), got, want)
	}
}

func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func TestAMissingPartDelaysOtherPartsForALimitedTime(t *testing.T) {
	f := newFlow(t, toMessages("http://vmn/?m=%msg&s=%stat"))
	parts := newParts("m", "4477", "abcdef", 9, false, 4)
	f.postJSON(t, parts[0])
	f.postJSON(t, parts[2])
	f.waitProcessed(t)
	if n := f.routeDue(t); n != 0 {
		t.Errorf("routed messages before they are due = %d, want 0", n)
	}
	f.clockOffset.Store(int64(6 * time.Minute))
	if n := f.routeDue(t); n != 1 {
		t.Errorf("routed messages = %d, want 1", n)
	}
	got, _ := f.targets()
	relaytest.Equal(t, "targets", got, []string{"http://vmn/?m=ab%5B%E2%80%A6%5Def&s=1"})
	statuses, err := f.statuses.Get(t.Context(), event.SMS, 1, 100)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the state of the first part", statuses[1].State, event.Done)
	relaytest.Equal(t, "the outcome of the first part", statuses[1].Outcome, "joined of 2 parts, without 2")
	f.postJSON(t, parts[1])
	f.waitProcessed(t)
	f.clockOffset.Store(int64(12 * time.Minute))
	if n := f.routeDue(t); n != 1 {
		t.Errorf("routed messages after a late part = %d, want 1", n)
	}
	f.wantSent(t, "http://vmn/?m=%5B%E2%80%A6%5Dcd%5B%E2%80%A6%5D&s=1", "http://vmn/?m=ab%5B%E2%80%A6%5Def&s=1")
}

func TestAReplayRoutesAJoinedMessageByTheNewRelay(t *testing.T) {
	f := newFlow(t, toMessages("http://old/%id?m=%msg"))
	for _, part := range newParts("m", "4477", "abcdef", 9, true, 8) {
		f.postJSON(t, part)
	}
	f.waitProcessed(t)
	relaytest.NoError(t, f.db.Inbound.Put(t.Context(), toMessages("http://new/%id?m=%msg")))
	for range 2 {
		n, err := f.posts.Replay(t.Context(), event.Filter{IDs: []string{"n1-s1", "n1-s2"}}, false)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the number of replayed events", n, 2)
	}
	f.wantSent(t, "http://new/n1-s1?m=abcdef", "http://old/n1-s1?m=abcdef")
}

func TestPartsReceivedByAStoppedGatewayAreJoined(t *testing.T) {
	db := recordstest.Open(t)
	parts := newParts("m", "4477", "abcdef", 9, true, 8)
	t.Run("the gateway that stops", func(t *testing.T) {
		f := newReplica(t, db, "n1", toMessages("http://vmn/%id?m=%msg"))
		f.postJSON(t, parts[1])
		f.waitProcessed(t)
	})
	f := newReplica(t, db, "n2")
	f.postJSON(t, parts[0])
	f.waitProcessed(t)
	got, _ := f.targets()
	relaytest.Equal(t, "targets", got, []string{"http://vmn/n2-s1?m=abcdef"})
}

func TestAnIncompleteMessageWithoutARelayIsUnrouted(t *testing.T) {
	f := newFlow(t)
	f.postJSON(t, newParts("m", "4477", "abcdef", 9, true, 8)[0])
	f.waitProcessed(t)
	f.clockOffset.Store(int64(time.Hour))
	if n := f.routeDue(t); n != 1 {
		t.Fatalf("routed messages = %d, want 1", n)
	}
	statuses, err := f.statuses.Get(t.Context(), event.SMS, 1, 100)
	relaytest.NoError(t, err)
	if len(statuses) != 1 {
		t.Fatalf("statuses = %d, want 1", len(statuses))
	}
	status := statuses[1]
	relaytest.Equal(t, "the state", status.State, event.Unrouted)
	relaytest.Equal(t, "the id of the event", status.ID, "n1-s1")
	relaytest.Equal(t, "the source", status.Source, "json")
	relaytest.Equal(t, "the account", status.Account, 1)
	relaytest.NoError(t, f.db.Inbound.Put(t.Context(), toMessages("http://vmn/%id?m=%msg")))
	for range 2 {
		if _, err := f.posts.Replay(t.Context(), event.Filter{}, false); err != nil {
			t.Fatal(err)
		}
	}
	f.wantSent(t, "http://vmn/n1-s1?m=abcd%5B%E2%80%A6%5D")
	f.wantStatuses(t, map[uint64]string{1: "done: joined of 1 parts, without 2"})
}

func TestSegmentsBySARAreJoined(t *testing.T) {
	f := newFlow(t, toMessages("http://vmn/?m=%msg&s=%stat&u=%udh"))
	for n := 2; n >= 1; n-- {
		f.postJSON(t, map[string]any{
			"id": fmt.Sprint(n), "from": "4477", "to": "447860000001", "coding": 7, "data": []string{"1b", "6521"}[n-1],
			"sar_msg_ref_num": 700, "sar_total_segments": 2, "sar_segment_seqnum": n,
		})
	}
	f.waitProcessed(t)
	got, _ := f.targets()
	relaytest.Equal(t, "targets", got, []string{"http://vmn/?m=%E2%82%AC%21&s=1&u="})
}

func TestAMessageWithAnInvalidUDHIsNotDelayed(t *testing.T) {
	f := newFlow(t, toMessages("http://vmn/?m=%msg&s=%stat&u=%udh"))
	f.postJSON(t, map[string]any{"id": "1", "from": "4477", "to": "447860000001", "text": "a", "udh": "050003cc02"})
	f.waitProcessed(t)
	got, _ := f.targets()
	relaytest.Equal(t, "targets", got, []string{"http://vmn/?m=a&s=2&u=050003cc02"})
}
