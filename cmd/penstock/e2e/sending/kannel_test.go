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

// kannelSink is the customer's endpoint. It keeps the query of every request, and its
// webhook-id as one more parameter.
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

// seen counts what came to a path, by the fields that matter.
func (s *kannelSink) seen(path string, fields ...string) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := make(map[string]int)
	for _, q := range s.hits[path] {
		var values []string
		for _, f := range fields {
			values = append(values, q.Get(f))
		}
		count[strings.Join(values, "|")]++
	}
	return count
}

// count is how many requests came to a path.
func (s *kannelSink) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hits[path])
}

// receives waits until so many different messages have come to a path.
func (s *kannelSink) receives(t *testing.T, path string, n int, fields ...string) {
	t.Helper()
	relaytest.Eventually(t, fmt.Sprintf("%d different messages at %s", n, path), func() (any, bool) {
		came := s.count(path)
		return came, came >= n && len(s.seen(path, fields...)) >= n
	})
}

// kannelUCS2 writes a text as fakesmsc wants Unicode: its octets, URL-encoded.
func kannelUCS2(text string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(&b, "%%%02X%%%02X", u>>8, u&0xff)
	}
	return b.String()
}

// kannelThousands are messages of every kind that 7-bit and Unicode know, every
// fifth in parts, mixed up and some twice: lines for fakesmsc, and what
// the sink must see as text|sender|number.
func kannelThousands(count int) (lines, want []string) {
	texts := []string{
		"plain words", "a&b=c+d 100% %25 #x?y /z;", "é à £ Ø ñ Ω @", "€ [x] {y} ~ ^ \\ |", "two  spaces and 'both' \"quotes\"",
		"%m %o %d %i are not replaced again", "<script>alert(1)</script>", strings.Repeat("long ", 32) + "end",
		"你好 & 100% + 1", "🎉 Ünïcödé €", "Привет", "日本語 %o #?",
	}
	random := rand.New(rand.NewPCG(uint64(count), 0))
	sent := make(map[float64]string) // by the time at which each is sent
	for i := range count {
		text, number := fmt.Sprintf("%d %s", i, texts[i%len(texts)]), fmt.Sprintf("4478000%05d", i)
		sender := []string{"447700900123", "+447700900124", "Example", "66777"}[i/len(texts)%4]
		all := []string{sender + " " + number + " text " + text}
		switch {
		case i%5 == 4:
			all, text = kannelParts(sender+" "+number, i)
		case i%len(texts) >= 8:
			all = []string{sender + " " + number + " ucs2 " + kannelUCS2(text)}
		}
		times := make([]float64, len(all))
		for n, line := range all {
			times[n] = float64(i) + 200*random.Float64()
			sent[times[n]] = line
		}
		if i%3 == 0 && len(all) > 1 { // the first to come comes twice, before the last
			slices.Sort(times)
			sent[(times[0]+times[1])/2] = sent[times[0]]
		}
		want = append(want, text+"|"+strings.TrimPrefix(sender, "+")+"|"+number)
	}
	for _, at := range slices.Sorted(maps.Keys(sent)) {
		lines = append(lines, sent[at])
	}
	return lines, want
}

// kannelParts are a message of two to four parts, by references of 8 and 16 bits,
// and the whole text.
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

// kannelForms are messages to one virtual number: what the sink must see of each
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

// TestKannel has Kannel hand over what its simulated carrier sends, until the
// customer's endpoint has it.
func TestKannel(t *testing.T) {
	t.Parallel()
	kannelPrograms(t)
	sink, began := newKannelSink(t), time.Now().Truncate(time.Second)
	g := kannelGateway(t, sink.url)
	k := startKannel(t, strings.TrimPrefix(g.URL(), "http://"))

	many, wantMany := kannelThousands(e2e.Rounds(t, "PENSTOCK_TEST_MESSAGES", 1_000, 10_000))
	sent := time.Now()
	smsc := k.carry(many)
	sink.receives(t, "/sms", len(wantMany), "m", "o", "d")
	t.Logf("%d messages in %v", len(many), time.Since(sent).Round(time.Millisecond))
	smsc.stop()
	forms, wantForms := kannelForms()
	further := k.carry(forms)
	sink.receives(t, "/vmn", len(wantForms), "msg", "orig", "code", "stat", "udh")
	further.stop()
	k.end()
	relaytest.NoError(t, g.Stop()) // nothing is under way any more

	t.Run("messages arrive, each once", func(t *testing.T) {
		onceEach(t, sink.seen("/sms", "m", "o", "d"), wantMany)
		if ids := sink.seen("/sms", "i"); len(ids) != len(wantMany) {
			t.Errorf("%d different message ids, want %d", len(ids), len(wantMany))
		}
	})
	t.Run("every coding arrives as what it is", func(t *testing.T) {
		onceEach(t, sink.seen("/vmn", "msg", "orig", "code", "stat", "udh"), wantForms)
	})
	t.Run("the carrier's connection and time come along", func(t *testing.T) {
		for _, q := range sink.hits["/vmn"] {
			at, err := time.ParseInLocation(time.DateTime, q.Get("smsTime"), kannelZone(t))
			if q.Get("netw") != "fake" || err != nil || at.Before(began) || at.After(time.Now()) {
				t.Errorf("netw=%s smsTime=%s (%v), sent after %v", q.Get("netw"), q.Get("smsTime"), err, began)
			}
		}
	})
	t.Run("nobody is texted back", func(t *testing.T) {
		for n, c := range map[int]*kannelChild{len(many): smsc, len(forms): further} {
			if !c.log.Has(fmt.Sprintf("fakesmsc: %d messages sent and 0 received", n)) {
				t.Errorf("fakesmsc got texts:\n%s", c.tail())
			}
		}
	})
}

// kannelZone is that of %smsTime where nothing is configured.
func kannelZone(t *testing.T) *time.Location {
	t.Helper()
	return relaytest.Must(time.LoadLocation("Europe/London"))(t)
}
