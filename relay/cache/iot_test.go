package cache

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestIoT(t *testing.T) { onEvery(t, testIoT) }

func testIoT(t *testing.T, open func(t *testing.T) *DB) {
	for name, test := range map[string]func(*testing.T, *IoT){
		"a frame belongs to the record that brought it first":         claimsHold,
		"a claim ends after its window":                               claimsEnd,
		"a frame that is brought again keeps its first record":        claimsStay,
		"a name that comes again is another frame at another time":    claimsOfATime,
		"3,000 frames are claimed in their order":                     manyClaims,
		"of very many frames only the last are remembered":            claimsAreBounded,
		"of two that claim at once one wins":                          claimRace,
		"the latest value never goes backwards":                       latestGoesForward,
		"latest values of many devices are kept apart, texts as well": latestOfMany,
		"the latest value keeps the type it was read as":              latestKeepsItsType,
		"two gateways that write at once leave the newest":            latestRace,
		"old values do not pile up":                                   latestIsShortened,
		"a device is known when it was filled":                        latestIsFilled,
		"a fill overwrites nothing newer":                             fillOverwritesNothing,
		"posts of a frame are joined in any order":                    postsJoin,
		"posts of a frame end after their window":                     postsEnd,
		"when a device was heard last never goes backwards":           heardGoesForward,
		"a device that was never heard is known as that":              neverHeard,
		"a device is forgotten":                                       deviceIsForgotten,
		"two accounts see nothing of each other":                      accountsAreApart,
		"everything ends":                                             everythingEnds,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t).IoT()) })
	}
}

const eui = "a84041d2c5182f01"

// moved is the same cache at another time.
func (c *IoT) moved(by time.Duration) *IoT {
	db := *c.db
	db.now = func() time.Time { return c.db.now().Add(by) }
	return &IoT{db: &db}
}

// of are the frames of an account.
func of(acct relay.AccountID, frames []iot.Seen) []iot.Seen {
	frames = slices.Clone(frames)
	for i := range frames {
		frames[i].Account = acct
	}
	return frames
}

// pointsOf are the points of an account.
func pointsOf(acct relay.AccountID, points []iot.Point) []iot.Point {
	points = slices.Clone(points)
	for i := range points {
		points[i].Account = acct
	}
	return points
}

func claimsHold(t *testing.T, c *IoT) {
	for _, step := range []struct {
		what, record string
		acct         relay.AccountID
		dedup, want  []string
	}{
		{"two new frames", "n1-u1", 1, []string{"a", "b"}, []string{"n1-u1", "n1-u1"}},
		{"a later record", "n1-u2", 1, []string{"c", "a"}, []string{"n1-u2", "n1-u1"}},
		{"the same record again", "n1-u1", 1, []string{"a"}, []string{"n1-u1"}},
		{"one frame twice in a batch", "n1-u3", 1, []string{"d", "d"}, []string{"n1-u3", "n1-u3"}},
		{"another account", "n1-u4", 2, []string{"a"}, []string{"n1-u4"}},
		{"nothing", "n1-u5", 1, nil, nil},
	} {
		var frames []iot.Seen
		for _, d := range step.dedup {
			frames = append(frames, iot.Seen{Device: eui, Dedup: d, Record: step.record})
		}
		got, err := c.Claim(t.Context(), of(step.acct, frames), time.Hour)
		if err != nil || !slices.Equal(got, step.want) {
			t.Errorf("%s: %q, want %q, %v", step.what, got, step.want, err)
		}
	}
	got, err := c.Claimed(t.Context(), of(1, []iot.Seen{{Device: eui, Dedup: "new"}, {Device: eui, Dedup: "a", Record: "other"}}), time.Hour)
	if err != nil || !slices.Equal(got, []string{"", "n1-u1"}) {
		t.Errorf("claimed by %q, %v", got, err)
	}
	if got, err = c.Claimed(t.Context(), of(1, []iot.Seen{{Device: eui, Dedup: "new"}}), time.Hour); err != nil || got[0] != "" {
		t.Errorf("looking claims nothing: %q, %v", got, err)
	}
}

func claimsEnd(t *testing.T, c *IoT) {
	const window = 2 * time.Hour
	claim := func(after time.Duration, record string) string {
		first, err := c.moved(after).Claim(t.Context(), of(1, []iot.Seen{{Device: eui, Dedup: "a", Record: record}}), window)
		relaytest.NoError(t, err)
		return first[0]
	}
	for after, want := range map[time.Duration]string{0: "first", window / 2: "first", window: "first"} {
		claim(0, "first")
		if got := claim(after, "later"); got != want {
			t.Errorf("after %s it is %q's", after, got)
		}
	}
	if got := claim(7*window, "new"); got != "new" {
		t.Errorf("after seven windows it is %q's", got)
	}
}

// claimsStay brings a frame again in each span, also by its first record, which is
// processed again later: it must not be taken for a duplicate of its own duplicates.
func claimsStay(t *testing.T, c *IoT) {
	const window = 2 * time.Hour
	for span, record := range []string{"first", "second", "third", "first", "fourth", "second"} {
		got, err := c.moved(time.Duration(span)*window).Claim(t.Context(), of(1, []iot.Seen{{Device: eui, Dedup: "a", Record: record}}), window)
		relaytest.NoError(t, err)
		if got[0] != "first" {
			t.Errorf("in span %d it is %q's", span, got[0])
		}
	}
}

func claimsOfATime(t *testing.T, c *IoT) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	seen := func(record string, after time.Duration) iot.Seen {
		return iot.Seen{Device: eui, Dedup: "0", Record: record, Span: time.Minute, At: noon.Add(after)}
	}
	for i, step := range []struct {
		frames []iot.Seen
		want   []string
	}{
		{[]iot.Seen{seen("r1", 0), seen("r2", 0), seen("r3", time.Minute)}, []string{"r1", "r1", "r1"}},
		{[]iot.Seen{seen("r4", -time.Minute), seen("r5", time.Minute+1)}, []string{"r1", "r5"}},
		{[]iot.Seen{seen("r6", 2*time.Minute), seen("r1", 0)}, []string{"r5", "r1"}},
		{[]iot.Seen{seen("r7", time.Hour), seen("r8", 2*time.Hour), seen("r9", time.Hour), seen("r10", 2*time.Hour)}, []string{"r7", "r8", "r9", "r10"}}, // the last is known, others are stored over themselves
	} {
		got, err := c.Claim(t.Context(), of(1, step.frames), 2*time.Hour)
		if err != nil || !slices.Equal(got, step.want) {
			t.Errorf("step %d: %q, want %q, %v", i, got, step.want, err)
		}
	}
	got, err := c.Claimed(t.Context(), of(1, []iot.Seen{seen("r11", 0), seen("r12", 2*time.Hour), seen("r13", 0)}), 2*time.Hour)
	if err != nil || !slices.Equal(got, []string{"", "r10", ""}) {
		t.Errorf("claimed by %q, %v", got, err)
	}
	if got, err = c.Claim(t.Context(), of(1, []iot.Seen{{Device: eui, Dedup: "1", Record: "old"}}), time.Hour); err != nil {
		t.Error(got, err)
	}
	old := seen("new", 0) // of a mark that holds no time
	old.Dedup = "1"
	if got, err = c.Claim(t.Context(), of(1, []iot.Seen{old}), time.Hour); err != nil || got[0] != "old" {
		t.Errorf("%q, %v", got, err)
	}
}

func manyClaims(t *testing.T, c *IoT) {
	frames := make([]iot.Seen, 3000)
	for i := range frames {
		frames[i] = iot.Seen{Device: eui, Dedup: fmt.Sprint(i % 2500), Record: fmt.Sprint(i)}
	}
	first, err := c.Claim(t.Context(), of(1, frames), time.Hour)
	relaytest.NoError(t, err)
	for i, record := range first {
		if record != fmt.Sprint(i%2500) {
			t.Fatalf("frame %d is %s's", i, record)
		}
	}
}

// claimsAreBounded claims frames of two accounts, at several times, where few marks may
// be kept: what is kept never exceeds that, and the last frames are always known.
func claimsAreBounded(t *testing.T, c *IoT) {
	const most, window = 100, time.Hour
	c.db.spans = &spanLimit{maxMarks: most / 2}
	all := make([]iot.Seen, 3000)
	for i := range all {
		all[i] = iot.Seen{Device: eui, Dedup: fmt.Sprint(i), Record: fmt.Sprint(i)}
	}
	claimed := func(c *IoT, acct relay.AccountID, some []iot.Seen) (known int) {
		t.Helper()
		records, err := c.Claimed(t.Context(), of(acct, some), window)
		relaytest.NoError(t, err)
		for i, record := range records {
			if record == some[i].Record {
				known++
			}
		}
		return known
	}
	for i := 0; i < len(all); i += 10 {
		acct, c := relay.AccountID(1+i/10%2), c.moved(time.Duration(i)*window/700)
		first, err := c.Claim(t.Context(), of(acct, all[i:i+10]), window)
		relaytest.NoError(t, err)
		if first[0] != all[i].Record || first[9] != all[i+9].Record {
			t.Fatalf("frame %d is known: %q", i, first)
		}
		last := all[max(0, i-20) : i+10] // ten of one account between ten of the other
		if known := claimed(c, 1, last) + claimed(c, 2, last); known != len(last) {
			t.Fatalf("%d of the last %d frames are known after %d", known, len(last), i)
		}
		if i%300 == 0 {
			if known := claimed(c, 1, all) + claimed(c, 2, all); known > most {
				t.Fatalf("%d frames are known after %d", known, i)
			}
		}
	}
	keys, err := c.db.rdb.Keys(t.Context(), "*seen:*").Result()
	relaytest.NoError(t, err)
	var marks int64
	for _, key := range keys {
		n, err := c.db.rdb.HLen(t.Context(), key).Result()
		relaytest.NoError(t, err)
		marks += n
	}
	if marks > most+most/2 { // and those of a span that time ended
		t.Errorf("%d marks are kept", marks)
	}
}

func claimRace(t *testing.T, c *IoT) {
	firsts := make([][]string, 4)
	var wg sync.WaitGroup
	for n := range firsts {
		wg.Go(func() {
			frames := make([]iot.Seen, 200)
			for i := range frames {
				frames[i] = iot.Seen{Device: eui, Dedup: fmt.Sprint((i*7 + n*31) % 200), Record: fmt.Sprint("r", n)}
			}
			records, err := c.Claim(t.Context(), of(1, frames), time.Hour)
			if err != nil {
				t.Error(err)
				return
			}
			firsts[n] = make([]string, 200)
			for i, r := range records {
				firsts[n][(i*7+n*31)%200] = r
			}
		})
	}
	wg.Wait()
	for n := range firsts {
		if !slices.Equal(firsts[n], firsts[0]) {
			t.Errorf("gateway %d sees other winners", n)
		}
	}
}

func pointOf(device, key string, seconds, value float64) iot.Point {
	return iot.Point{Account: 1, DeviceID: device, SensorID: iot.SensorID(device, key), Time: at(seconds), Value: value}
}

func latest(t *testing.T, c *IoT, device string) []iot.Point {
	t.Helper()
	got, _, err := c.Latest(t.Context(), 1, device)
	relaytest.NoError(t, err)
	return got
}

func latestGoesForward(t *testing.T, c *IoT) {
	for _, step := range []struct {
		what string
		give []iot.Point
		want float64
	}{
		{"the first", []iot.Point{pointOf("d", "a", 10, 1)}, 1},
		{"a newer one", []iot.Point{pointOf("d", "a", 20, 2)}, 2},
		{"an older one changes nothing", []iot.Point{pointOf("d", "a", 15, 3)}, 2},
		{"one a nanosecond older changes nothing", []iot.Point{{DeviceID: "d", SensorID: iot.SensorID("d", "a"), Time: at(20).Add(-1), Value: 4}}, 2},
		{"the same time again overwrites", []iot.Point{pointOf("d", "a", 20, 5)}, 5},
		{"the newest of a batch counts", []iot.Point{pointOf("d", "a", 40, 7), pointOf("d", "a", 30, 6)}, 7},
		{"of equal times the last of a batch counts", []iot.Point{pointOf("d", "a", 50, 8), pointOf("d", "a", 50, 9)}, 9},
		{"nothing changes nothing", nil, 9},
	} {
		relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, step.give)))
		if got := latest(t, c, "d"); len(got) != 1 || got[0].Value != step.want {
			t.Fatalf("%s: %+v", step.what, got)
		}
	}
}

func latestOfMany(t *testing.T, c *IoT) {
	var points []iot.Point
	for i := range 1500 {
		id := fmt.Sprintf("d%04d", i)
		text := pointOf(id, "b", 0.000000001, 0)
		text.IsText, text.Text = true, fmt.Sprint("é|", i)
		points = append(points, pointOf(id, "a", float64(i), float64(i)/3), text)
	}
	relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, points)))
	for i := range 1500 {
		id := fmt.Sprintf("d%04d", i)
		want := points[2*i : 2*i+2]
		slices.SortFunc(want, func(a, b iot.Point) int { return strings.Compare(a.SensorID, b.SensorID) })
		relaytest.Equal(t, "latest points of "+id, latest(t, c, id), want)
	}
}

func latestKeepsItsType(t *testing.T, c *IoT) {
	warm := pointOf("d", "a", 10, 1)
	warm.Type = "temperature"
	relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, []iot.Point{warm})))
	if got := latest(t, c, "d"); len(got) != 1 || got[0] != warm {
		t.Errorf("latest %+v, want %+v alone", got, warm)
	}
}

func latestRace(t *testing.T, c *IoT) {
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range 50 {
				if err := c.SetLatest(t.Context(), pointsOf(1, []iot.Point{pointOf("d", "a", float64(i*4+n), float64(i*4+n)), pointOf("d", "b", float64(200-i), float64(n))})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := latest(t, c, "d")
	if len(got) != 2 || !slices.ContainsFunc(got, func(p iot.Point) bool { return p.Value == 199 && p.Time.Equal(at(199)) }) ||
		!slices.ContainsFunc(got, func(p iot.Point) bool { return p.Time.Equal(at(200)) }) {
		t.Errorf("latest %+v, want one of two sensors each: 199 at %v, and one at %v", got, at(199), at(200))
	}
}

func latestIsShortened(t *testing.T, c *IoT) {
	relaytest.NoError(t, c.FillLatest(t.Context(), 1, "d", nil, at(0)))
	for i := range 200 {
		relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, []iot.Point{pointOf("d", "a", float64(i), 1), pointOf("d", "b", float64(i), 2)})))
	}
	n, err := c.db.rdb.HLen(t.Context(), keyLatest(1, "d")).Result()
	if err != nil || n > 2*2+spareFields {
		t.Errorf("%d fields, %v", n, err)
	}
	if _, filled, err := c.Latest(t.Context(), 1, "d"); !filled.Equal(at(0)) {
		t.Errorf("filled %s, %v", filled, err)
	}
}

func latestIsFilled(t *testing.T, c *IoT) {
	wants := func(what, device string, filled time.Time, points int) {
		t.Helper()
		got, at, err := c.Latest(t.Context(), 1, device)
		relaytest.NoError(t, err)
		relaytest.Equal(t, what+": the time at which the device was filled", at, filled)
		relaytest.Equal(t, what+": the number of points", len(got), points)
	}
	relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, []iot.Point{pointOf("d", "a", 20, 2)})))
	wants("a device that was never filled", "d", time.Time{}, 1)
	relaytest.NoError(t, c.FillLatest(t.Context(), 1, "d", []iot.Point{pointOf("d", "b", 5, 1)}, at(30)))
	wants("a filled device", "d", at(30), 2)
	relaytest.NoError(t, c.FillLatest(t.Context(), 1, "e", nil, at(30)))
	wants("a device without readings", "e", at(30), 0)
	flush(t, c.db)
	wants("after the cache was emptied", "d", time.Time{}, 0)
}

func fillOverwritesNothing(t *testing.T, c *IoT) {
	a, b := pointOf("d", "a", 20, 2), pointOf("d", "b", 20, 2)
	relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, []iot.Point{a, b})),
		c.FillLatest(t.Context(), 1, "d", []iot.Point{pointOf("d", "a", 10, 1), pointOf("d", "b", 20, 1)}, at(30)))
	for _, p := range latest(t, c, "d") {
		if p != a && p != b {
			t.Errorf("latest %+v, want %+v or %+v", p, a, b)
		}
	}
}

func postsJoin(t *testing.T, c *IoT) {
	gw := func(id string, rssi, snr *float64) decoders.Gateway {
		return decoders.Gateway{ID: id, RSSI: rssi, SNR: snr}
	}
	parts := []iot.FramePart{
		{At: at(10), Gateways: []decoders.Gateway{gw("", new(-90.0), new(7.5)), gw("a|b", new(-90.0), new(7.5))}},
		{Gateways: []decoders.Gateway{gw("a|b", new(-80.0), new(7.5)), gw("c", nil, new(-3.25))}, Position: &decoders.Position{Latitude: 51.5, Longitude: -0.125}},
		{Gateways: []decoders.Gateway{gw("a|b", new(-60.0), new(-20.0)), gw("c", new(-118.0), nil), gw("d", nil, nil)}},
	}
	want := iot.MergedFrame{At: at(10), Position: parts[1].Position, Gateways: []decoders.Gateway{
		gw("", new(-90.0), new(7.5)), gw("a|b", new(-80.0), new(7.5)), gw("c", nil, new(-3.25)), gw("d", nil, nil),
	}}
	for n, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {0, 0, 2, 1, 1, 2}} {
		var got []iot.MergedFrame
		for _, i := range order {
			p := parts[i]
			p.Device, p.Dedup = "dev", fmt.Sprint("f", n)
			var err error
			got, err = c.MergeParts(t.Context(), 1, []iot.FramePart{p}, time.Minute)
			relaytest.NoError(t, err)
		}
		if len(got) != 1 {
			t.Fatalf("in the order: %d results, want %d", len(got), 1)
		}
		relaytest.Equal(t, "in the order, got[0]", got[0], want)
	}
	var many []iot.FramePart
	for i := range 250 {
		many = append(many, iot.FramePart{Device: fmt.Sprint("dev", i%100), Dedup: fmt.Sprint("f", i), At: at(float64(i))})
	}
	got, err := c.MergeParts(t.Context(), 2, many, time.Minute)
	relaytest.NoError(t, err)
	for i := range many {
		relaytest.Equal(t, fmt.Sprint("the merged frame of part ", i), got[i], iot.MergedFrame{At: many[i].At})
	}
	again := iot.FramePart{Device: "dev0", Dedup: "f0", At: at(99)}
	got, err = c.MergeParts(t.Context(), 2, []iot.FramePart{again, {Device: "dev0", Dedup: "g"}}, time.Minute)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the time of a frame that comes again", got[0].At, at(0))
	relaytest.Equal(t, "the time of a frame without data", got[1].At, time.Time{})
}

func postsEnd(t *testing.T, c *IoT) {
	const window = 2 * time.Hour
	join := func(after time.Duration, p iot.FramePart) iot.MergedFrame {
		p.Device, p.Dedup = "dev", "f"
		got, err := c.moved(after).MergeParts(t.Context(), 1, []iot.FramePart{p}, window)
		relaytest.NoError(t, err)
		return got[0]
	}
	join(0, iot.FramePart{At: at(1), Position: &decoders.Position{Latitude: 1}})
	relaytest.Equal(t, "the frame in the next window", join(window, iot.FramePart{At: at(2), Position: &decoders.Position{Latitude: 2}}),
		iot.MergedFrame{At: at(1), Position: &decoders.Position{Latitude: 2}})
	relaytest.Equal(t, "the frame long after its window", join(7*window, iot.FramePart{}), iot.MergedFrame{})
}

func heardGoesForward(t *testing.T, c *IoT) {
	for _, seconds := range []float64{20, 10, 20} {
		relaytest.NoError(t, c.SetHeard(t.Context(), map[relay.AccountID]map[string]time.Time{1: map[string]time.Time{"d": at(seconds)}}))
	}
	relaytest.NoError(t, c.FillHeard(t.Context(), 1, map[string]time.Time{"d": at(15), "e": at(7)}, at(40)), c.SetHeard(t.Context(), map[relay.AccountID]map[string]time.Time{1: nil}))
	got, err := c.Heard(t.Context(), 1, []string{"d", "e", "f"})
	want := map[string]iot.Heard{"d": {At: at(20), Filled: at(40)}, "e": {At: at(7), Filled: at(40)}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := c.Heard(t.Context(), 1, nil); err != nil || len(got) != 0 {
		t.Errorf("nothing asked: %v, %v", got, err)
	}
}

func neverHeard(t *testing.T, c *IoT) {
	relaytest.NoError(t, c.FillHeard(t.Context(), 1, map[string]time.Time{"d": {}}, at(40)))
	if got, err := c.Heard(t.Context(), 1, []string{"d"}); err != nil || got["d"] != (iot.Heard{Filled: at(40)}) {
		t.Errorf("%v, %v", got, err)
	}
	relaytest.NoError(t, c.SetHeard(t.Context(), map[relay.AccountID]map[string]time.Time{1: map[string]time.Time{"d": at(50)}}))
	if got, err := c.Heard(t.Context(), 1, []string{"d"}); err != nil || got["d"] != (iot.Heard{At: at(50), Filled: at(40)}) {
		t.Errorf("%v, %v", got, err)
	}
}

func deviceIsForgotten(t *testing.T, c *IoT) {
	for _, id := range []string{"d", "e"} {
		relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, []iot.Point{pointOf(id, "a", 20, 2)})), c.FillHeard(t.Context(), 1, map[string]time.Time{id: at(1)}, at(2)))
	}
	relaytest.NoError(t, c.ForgetDevice(t.Context(), 1, "d"))
	heard, err := c.Heard(t.Context(), 1, []string{"d", "e"})
	if err != nil || len(heard) != 1 || len(latest(t, c, "d")) != 0 || len(latest(t, c, "e")) != 1 {
		t.Errorf("heard %v, %v", heard, err)
	}
}

func accountsAreApart(t *testing.T, c *IoT) {
	relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, []iot.Point{pointOf("d", "a", 20, 2)})), c.FillHeard(t.Context(), 1, map[string]time.Time{"d": at(1)}, at(2)))
	points, filled, err := c.Latest(t.Context(), 2, "d")
	heard, err2 := c.Heard(t.Context(), 2, []string{"d"})
	if errors.Join(err, err2) != nil || len(points)+len(heard) > 0 || !filled.IsZero() {
		t.Error(points, heard, errors.Join(err, err2))
	}
}

// everythingEnds holds that no key stays for ever.
func everythingEnds(t *testing.T, c *IoT) {
	_, err1 := c.Claim(t.Context(), of(1, []iot.Seen{{Device: "d", Dedup: "f", Record: "r"}}), time.Minute)
	_, err2 := c.MergeParts(t.Context(), 1, []iot.FramePart{{Device: "d", Dedup: "f", At: at(1)}}, time.Minute)
	relaytest.NoError(t, err1, err2, c.SetLatest(t.Context(), pointsOf(1, []iot.Point{pointOf("d", "a", 1, 1)})), c.FillLatest(t.Context(), 1, "e", nil, at(1)),
		c.SetHeard(t.Context(), map[relay.AccountID]map[string]time.Time{1: map[string]time.Time{"d": at(1)}}), c.FillHeard(t.Context(), 1, map[string]time.Time{"d": at(1)}, at(1)))
	now := spanAt(c.db.now(), time.Minute)
	most := map[string]time.Duration{
		keySeen(1, shardOf("d", "f"), now): 2 * time.Minute, keyPosts(1, "d", now): 2 * time.Minute,
		keyLatest(1, "d"): latestTTL, keyLatest(1, "e"): latestTTL, keyHeard(1): heardTTL, keyHeardFilled(1): heardTTL,
	}
	for key, most := range most {
		left, err := c.db.rdb.PTTL(t.Context(), key).Result()
		if err != nil || left <= 0 || left > most {
			t.Errorf("%s ends after %s, %v", key, left, err)
		}
	}
}

func TestWhatIsNoEntryIsRefused(t *testing.T) {
	for field, value := range map[string]string{"s": "n|t|1", "s|x": "n|t|1", "s|1": "n|t|one", "s|2": "n", "filled": "x"} {
		if p, _, err := latestOf(map[string]string{field: value}); err == nil {
			t.Errorf("%q %q was read as %+v", field, value, p)
		}
	}
}

// FuzzWhole holds that what is kept of a frame is read or refused, never worse.
func FuzzWhole(f *testing.F) {
	f.Add("at", "1770000000000000000")
	f.Add("g:7.5|-90|a|b", "")
	f.Add("position", "51.5|-0.125")
	f.Add("position", "51.5|")
	f.Fuzz(func(t *testing.T, name, text string) {
		w, err := mergedFrom(frameOf("f"), map[string]string{frameOf("f") + name: text, frameOf("f:") + "at": "1"})
		if err == nil && strings.HasPrefix(name, "g:") && len(w.Gateways) != 1 {
			t.Fatalf("%q %q: %+v", name, text, w)
		}
		if err == nil && name == "position" && w.Position == nil {
			t.Fatalf("%q: no position and no error", text)
		}
	})
}
