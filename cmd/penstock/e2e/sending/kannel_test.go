package sending

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

const kannelToken = "a-token_for-Kannel"

// kannelSink is the customer's endpoint. It stores the query of every request, with the
// webhook-id as an additional parameter.
type kannelSink struct {
	url  string
	mu   sync.Mutex
	hits map[string][]url.Values // by path
}

func newKannelSink(t *testing.T) *kannelSink {
	s := &kannelSink{hits: make(map[string][]url.Values)}
	s.url = e2e.NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		query := r.URL.Query()
		query.Set("webhook-id", r.Header.Get("webhook-id"))
		s.hits[r.URL.Path] = append(s.hits[r.URL.Path], query)
	}))
	return s
}

// countBy counts the requests to a path by the values of some parameters, joined by "|".
func (s *kannelSink) countBy(path string, fields ...string) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[string]int)
	for _, q := range s.hits[path] {
		var values []string
		for _, f := range fields {
			values = append(values, q.Get(f))
		}
		counts[strings.Join(values, "|")]++
	}
	return counts
}

// count returns the number of requests to a path.
func (s *kannelSink) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hits[path])
}

// awaitRequests waits until a path has received at least n requests with different values of the
// fields.
func (s *kannelSink) awaitRequests(t *testing.T, path string, n int, fields ...string) {
	t.Helper()
	relaytest.Eventually(t, fmt.Sprintf("%d different messages at %s", n, path), func() (any, bool) {
		requests := s.count(path)
		return requests, requests >= n && len(s.countBy(path, fields...)) >= n
	})
}

// kannelUCS2 returns a text as fakesmsc expects Unicode: octets of UTF-16, URL-encoded.
func kannelUCS2(text string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(&b, "%%%02X%%%02X", u>>8, u&0xff)
	}
	return b.String()
}

// kannelMessages returns count messages with texts of every 7-bit and Unicode kind, in a random order.
// Every fifth message has several parts, some of which are sent twice. lines are the input of
// fakesmsc, want are the expected requests as text|sender|number.
func kannelMessages(count int) (lines, want []string) {
	texts := []string{
		"plain words", "a&b=c+d 100% %25 #x?y /z;", "é à £ Ø ñ Ω @", "€ [x] {y} ~ ^ \\ |", "two  spaces and 'both' \"quotes\"",
		"%m %o %d %i are not replaced again", "<script>alert(1)</script>", strings.Repeat("long ", 32) + "end",
		"你好 & 100% + 1", "🎉 Ünïcödé €", "Привет", "日本語 %o #?",
	}
	random := rand.New(rand.NewPCG(uint64(count), 0))
	linesByTime := make(map[float64]string) // lines by their sending time
	for i := range count {
		text, number := fmt.Sprintf("%d %s", i, texts[i%len(texts)]), fmt.Sprintf("4478000%05d", i)
		sender := []string{"447700900123", "+447700900124", "Example", "66777"}[i/len(texts)%4]
		parts := []string{sender + " " + number + " text " + text}
		switch {
		case i%5 == 4:
			parts, text = kannelParts(sender+" "+number, i)
		case i%len(texts) >= 8:
			parts = []string{sender + " " + number + " ucs2 " + kannelUCS2(text)}
		}
		sendTimes := make([]float64, len(parts))
		for n, line := range parts {
			sendTimes[n] = float64(i) + 200*random.Float64()
			linesByTime[sendTimes[n]] = line
		}
		if i%3 == 0 && len(parts) > 1 { // repeat the earliest part before the next one
			slices.Sort(sendTimes)
			linesByTime[(sendTimes[0]+sendTimes[1])/2] = linesByTime[sendTimes[0]]
		}
		want = append(want, text+"|"+strings.TrimPrefix(sender, "+")+"|"+number)
	}
	for _, sendTime := range slices.Sorted(maps.Keys(linesByTime)) {
		lines = append(lines, linesByTime[sendTime])
	}
	return lines, want
}

// kannelParts returns the lines of a message of two to four parts, with a reference of 8 or 16 bits,
// and the text of the message.
func kannelParts(addresses string, i int) (lines []string, text string) {
	total := 2 + i%3
	for n := 1; n <= total; n++ {
		udh := fmt.Sprintf("%%05%%00%%03%%%02X%%%02X%%%02X", i%256, total, n)
		if i%2 == 0 {
			udh = fmt.Sprintf("%%06%%08%%04%%%02X%%%02X%%%02X%%%02X", i/256%256, i%256, total, n)
		}
		part := fmt.Sprintf("part %d of %d of message %d; x", n, total, i)
		lines = append(lines, addresses+" udh-text "+udh+" "+part)
		text += part
	}
	return lines, text
}

// kannelForms returns messages of every form to one virtual number, and the expected requests
// as text|sender|code|stat|udh.
func kannelForms() (lines, want []string) {
	for _, m := range []struct{ sender, content, want string }{
		{"447700900123", "text 7-bit €", "7-bit €|447700900123|7|0|"},
		{"+447700900123", "ucs2 " + kannelUCS2("Unicode 🎉"), "Unicode 🎉|447700900123|16|0|"},
		{"447700900123", "data %00%FF%2B+", "00ff2b20|447700900123|8|0|"},
		{"447700900123", "udh-data %06%05%04%0B%84%23%F0 %00%01", "0001|447700900123|8|0|0605040b8423f0"},
		{"Bank", "udh-text %05%00%03%CC%03%03 three", ""},
		{"Bank", "udh-text %05%00%03%CC%03%01 one, ", ""},
		{"Bank", "udh-text %05%00%03%CC%03%02 two, ", "one, two, three|Bank|7|0|"},
		{"447700900123", "ucs2 ", "|447700900123|16|0|"},
	} {
		lines = append(lines, m.sender+" 447860000001 "+m.content)
		if m.want != "" {
			want = append(want, m.want)
		}
	}
	return lines, want
}

// TestKannel sends messages from Kannel's simulated carrier through Kannel and the gateway to
// the customer's endpoint.
func TestKannel(t *testing.T) {
	t.Parallel()
	kannelPrograms(t)
	sink, startedAt := newKannelSink(t), time.Now().Truncate(time.Second)
	g := kannelGateway(t, sink.url)
	k := startKannel(t, strings.TrimPrefix(g.URL(), "http://"))

	lines, wantMessages := kannelMessages(e2e.Rounds(t, "PENSTOCK_TEST_MESSAGES", 1_000, 10_000))
	sentAt := time.Now()
	smsc := k.carry(lines)
	sink.awaitRequests(t, "/sms", len(wantMessages), "m", "o", "d")
	t.Logf("%d messages in %v", len(lines), time.Since(sentAt).Round(time.Millisecond))
	smsc.stop()
	forms, wantForms := kannelForms()
	formsSMSC := k.carry(forms)
	sink.awaitRequests(t, "/vmn", len(wantForms), "msg", "orig", "code", "stat", "udh")
	formsSMSC.stop()
	k.end()
	relaytest.NoError(t, g.Stop()) // no delivery is in flight afterwards

	t.Run("each message arrives once", func(t *testing.T) {
		checkEachOnce(t, sink.countBy("/sms", "m", "o", "d"), wantMessages)
		if ids := sink.countBy("/sms", "i"); len(ids) != len(wantMessages) {
			t.Errorf("different message ids = %d, want %d", len(ids), len(wantMessages))
		}
	})
	t.Run("every coding arrives unchanged", func(t *testing.T) {
		checkEachOnce(t, sink.countBy("/vmn", "msg", "orig", "code", "stat", "udh"), wantForms)
	})
	t.Run("requests have the carrier's connection and time", func(t *testing.T) {
		for _, q := range sink.hits["/vmn"] {
			smsTime, err := time.ParseInLocation(time.DateTime, q.Get("smsTime"), kannelZone(t))
			if q.Get("netw") != "fake" || err != nil || smsTime.Before(startedAt) || smsTime.After(time.Now()) {
				t.Errorf("netw=%s smsTime=%s (%v), sent after %v", q.Get("netw"), q.Get("smsTime"), err, startedAt)
			}
		}
	})
	t.Run("Kannel sends no answer to a sender", func(t *testing.T) {
		for n, c := range map[int]*kannelChild{len(lines): smsc, len(forms): formsSMSC} {
			if !c.log.Has(fmt.Sprintf("fakesmsc: %d messages sent and 0 received", n)) {
				t.Errorf("fakesmsc received messages:\n%s", c.tail())
			}
		}
	})
}

// kannelZone returns the time zone of %smsTime if none is configured.
func kannelZone(t *testing.T) *time.Location {
	t.Helper()
	return relaytest.Must(time.LoadLocation("Europe/London"))(t)
}
