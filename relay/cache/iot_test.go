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

func TestIoT(t *testing.T) { onEveryServer(t, testIoT) }

func testIoT(t *testing.T, open func(t *testing.T) *DB) {
	for name, test := range map[string]func(*testing.T, *IoT){
		"the first record holds a frame":                        claimsHold,
		"a claim expires after its window":                      claimsExpire,
		"a repeated frame keeps its first record":               claimsStay,
		"a repeated name at another time is another frame":      claimsOfATime,
		"3,000 frames are claimed in order":                     manyClaims,
		"the number of marks is limited":                        claimsAreBounded,
		"concurrent claims have one winner":                     claimRace,
		"the latest value never goes backwards":                 latestGoesForward,
		"latest values of many devices are separate":            latestOfMany,
		"the latest value keeps its type":                       latestKeepsItsType,
		"concurrent writes leave the newest value":              latestRace,
		"old values are deleted":                                latestIsShortened,
		"the time of the last fill is stored":                   latestIsFilled,
		"a fill overwrites no newer value":                      fillOverwritesNothing,
		"posts of a frame are merged in any order":              postsAreMerged,
		"posts of a frame expire after their window":            postsExpire,
		"the time a device was last heard never goes backwards": heardGoesForward,
		"a device that was never heard is stored":               deviceWasNeverHeard,
		"a device is forgotten":                                 deviceIsForgotten,
		"accounts are separate":                                 accountsAreSeparate,
		"every key expires":                                     keysExpire,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t).IoT()) })
	}
}

const eui = "a84041d2c5182f01"

// shifted returns the same cache with its clock d ahead.
func (c *IoT) shifted(d time.Duration) *IoT {
	db := *c.db
	db.now = func() time.Time { return c.db.now().Add(d) }
	return &IoT{db: &db}
}

// framesOf returns the frames with an account.
func framesOf(acct relay.AccountID, frames []iot.FrameKey) []iot.FrameKey {
	frames = slices.Clone(frames)
	for i := range frames {
		frames[i].Account = acct
	}
	return frames
}

// pointsOf returns the points with an account.
func pointsOf(acct relay.AccountID, points []iot.Point) []iot.Point {
	points = slices.Clone(points)
	for i := range points {
		points[i].Account = acct
	}
	return points
}

func claimsHold(t *testing.T, c *IoT) {
	for _, step := range []struct {
		name, record string
		acct         relay.AccountID
		dedup, want  []string
	}{
		{"two new frames", "n1-u1", 1, []string{"a", "b"}, []string{"n1-u1", "n1-u1"}},
		{"a later record", "n1-u2", 1, []string{"c", "a"}, []string{"n1-u2", "n1-u1"}},
		{"a repeated record", "n1-u1", 1, []string{"a"}, []string{"n1-u1"}},
		{"one frame twice in a batch", "n1-u3", 1, []string{"d", "d"}, []string{"n1-u3", "n1-u3"}},
		{"another account", "n1-u4", 2, []string{"a"}, []string{"n1-u4"}},
		{"no frames", "n1-u5", 1, nil, nil},
	} {
		var frames []iot.FrameKey
		for _, d := range step.dedup {
			frames = append(frames, iot.FrameKey{Device: eui, Dedup: d, RecordID: step.record})
		}
		got, err := c.Deduplicate(t.Context(), framesOf(step.acct, frames), time.Hour)
		if err != nil || !slices.Equal(got, step.want) {
			t.Errorf("%s: records = %q, error = %v, want %q", step.name, got, err, step.want)
		}
	}
	got, err := c.FirstRecords(t.Context(), framesOf(1, []iot.FrameKey{{Device: eui, Dedup: "new"}, {Device: eui, Dedup: "a", RecordID: "other"}}), time.Hour)
	if err != nil || !slices.Equal(got, []string{"", "n1-u1"}) {
		t.Errorf("Claimed = %q, error = %v", got, err)
	}
	if got, err = c.FirstRecords(t.Context(), framesOf(1, []iot.FrameKey{{Device: eui, Dedup: "new"}}), time.Hour); err != nil || got[0] != "" {
		t.Errorf("record after Claimed = %q, error = %v, want none", got, err)
	}
}

func claimsExpire(t *testing.T, c *IoT) {
	const window = 2 * time.Hour
	claim := func(offset time.Duration, record string) string {
		records, err := c.shifted(offset).Deduplicate(t.Context(), framesOf(1, []iot.FrameKey{{Device: eui, Dedup: "a", RecordID: record}}), window)
		relaytest.NoError(t, err)
		return records[0]
	}
	for offset, want := range map[time.Duration]string{0: "first", window / 2: "first", window: "first"} {
		claim(0, "first")
		if got := claim(offset, "later"); got != want {
			t.Errorf("record after %s = %q, want %q", offset, got, want)
		}
	}
	if got := claim(7*window, "new"); got != "new" {
		t.Errorf("record after seven windows = %q, want new", got)
	}
}

// claimsStay repeats a frame in each span, also with its first record: a record that is processed
// again must not be a duplicate of its own duplicates.
func claimsStay(t *testing.T, c *IoT) {
	const window = 2 * time.Hour
	for span, record := range []string{"first", "second", "third", "first", "fourth", "second"} {
		got, err := c.shifted(time.Duration(span)*window).Deduplicate(t.Context(), framesOf(1, []iot.FrameKey{{Device: eui, Dedup: "a", RecordID: record}}), window)
		relaytest.NoError(t, err)
		if got[0] != "first" {
			t.Errorf("record in span %d = %q, want first", span, got[0])
		}
	}
}

func claimsOfATime(t *testing.T, c *IoT) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	seen := func(record string, offset time.Duration) iot.FrameKey {
		return iot.FrameKey{Device: eui, Dedup: "0", RecordID: record, Span: time.Minute, Time: noon.Add(offset)}
	}
	for i, step := range []struct {
		frames []iot.FrameKey
		want   []string
	}{
		{[]iot.FrameKey{seen("r1", 0), seen("r2", 0), seen("r3", time.Minute)}, []string{"r1", "r1", "r1"}},
		{[]iot.FrameKey{seen("r4", -time.Minute), seen("r5", time.Minute+1)}, []string{"r1", "r5"}},
		{[]iot.FrameKey{seen("r6", 2*time.Minute), seen("r1", 0)}, []string{"r5", "r1"}},
		{[]iot.FrameKey{seen("r7", time.Hour), seen("r8", 2*time.Hour), seen("r9", time.Hour), seen("r10", 2*time.Hour)}, []string{"r7", "r8", "r9", "r10"}}, // each mark replaces the previous one
	} {
		got, err := c.Deduplicate(t.Context(), framesOf(1, step.frames), 2*time.Hour)
		if err != nil || !slices.Equal(got, step.want) {
			t.Errorf("step %d: records = %q, error = %v, want %q", i, got, err, step.want)
		}
	}
	got, err := c.FirstRecords(t.Context(), framesOf(1, []iot.FrameKey{seen("r11", 0), seen("r12", 2*time.Hour), seen("r13", 0)}), 2*time.Hour)
	if err != nil || !slices.Equal(got, []string{"", "r10", ""}) {
		t.Errorf("Claimed = %q, error = %v", got, err)
	}
	if got, err = c.Deduplicate(t.Context(), framesOf(1, []iot.FrameKey{{Device: eui, Dedup: "1", RecordID: "old"}}), time.Hour); err != nil {
		t.Errorf("records = %q, error = %v", got, err)
	}
	timed := seen("new", 0) // the stored mark has no time
	timed.Dedup = "1"
	if got, err = c.Deduplicate(t.Context(), framesOf(1, []iot.FrameKey{timed}), time.Hour); err != nil || got[0] != "old" {
		t.Errorf("record = %q, error = %v, want old", got, err)
	}
}

func manyClaims(t *testing.T, c *IoT) {
	frames := make([]iot.FrameKey, 3000)
	for i := range frames {
		frames[i] = iot.FrameKey{Device: eui, Dedup: fmt.Sprint(i % 2500), RecordID: fmt.Sprint(i)}
	}
	records, err := c.Deduplicate(t.Context(), framesOf(1, frames), time.Hour)
	relaytest.NoError(t, err)
	for i, record := range records {
		if record != fmt.Sprint(i%2500) {
			t.Fatalf("record of frame %d = %s, want %d", i, record, i%2500)
		}
	}
}

// claimsAreBounded claims frames of two accounts at several times with a limit on marks. The
// number of marks never exceeds the limit, and the last frames always have marks.
func claimsAreBounded(t *testing.T, c *IoT) {
	const maxMarks, window = 100, time.Hour
	c.db.spans = &spanLimit{maxMarks: maxMarks / 2}
	allFrames := make([]iot.FrameKey, 3000)
	for i := range allFrames {
		allFrames[i] = iot.FrameKey{Device: eui, Dedup: fmt.Sprint(i), RecordID: fmt.Sprint(i)}
	}
	claimed := func(c *IoT, acct relay.AccountID, frames []iot.FrameKey) (known int) {
		t.Helper()
		records, err := c.FirstRecords(t.Context(), framesOf(acct, frames), window)
		relaytest.NoError(t, err)
		for i, record := range records {
			if record == frames[i].RecordID {
				known++
			}
		}
		return known
	}
	for i := 0; i < len(allFrames); i += 10 {
		acct, c := relay.AccountID(1+i/10%2), c.shifted(time.Duration(i)*window/700)
		claimedBy, err := c.Deduplicate(t.Context(), framesOf(acct, allFrames[i:i+10]), window)
		relaytest.NoError(t, err)
		if claimedBy[0] != allFrames[i].RecordID || claimedBy[9] != allFrames[i+9].RecordID {
			t.Fatalf("records of the new frames from %d = %q", i, claimedBy)
		}
		lastFrames := allFrames[max(0, i-20) : i+10] // frames of both accounts
		if known := claimed(c, 1, lastFrames) + claimed(c, 2, lastFrames); known != len(lastFrames) {
			t.Fatalf("after frame %d: %d of the last %d frames have marks", i, known, len(lastFrames))
		}
		if i%300 == 0 {
			if known := claimed(c, 1, allFrames) + claimed(c, 2, allFrames); known > maxMarks {
				t.Fatalf("after frame %d: %d frames have marks, want at most %d", i, known, maxMarks)
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
	if marks > maxMarks+maxMarks/2 { // includes the marks of an expired span
		t.Errorf("stored marks = %d, want at most %d", marks, maxMarks+maxMarks/2)
	}
}

func claimRace(t *testing.T, c *IoT) {
	firsts := make([][]string, 4)
	var wg sync.WaitGroup
	for n := range firsts {
		wg.Go(func() {
			frames := make([]iot.FrameKey, 200)
			for i := range frames {
				frames[i] = iot.FrameKey{Device: eui, Dedup: fmt.Sprint((i*7 + n*31) % 200), RecordID: fmt.Sprint("r", n)}
			}
			records, err := c.Deduplicate(t.Context(), framesOf(1, frames), time.Hour)
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
			t.Errorf("records for gateway %d differ from gateway 0", n)
		}
	}
}

func pointOf(device, key string, seconds, value float64) iot.Point {
	return iot.Point{Account: 1, DeviceID: device, SensorID: iot.SensorID(device, key), Time: timeAt(seconds), Value: value}
}

func latest(t *testing.T, c *IoT, device string) []iot.Point {
	t.Helper()
	got, _, err := c.Latest(t.Context(), 1, device)
	relaytest.NoError(t, err)
	return got
}

func latestGoesForward(t *testing.T, c *IoT) {
	for _, step := range []struct {
		name   string
		points []iot.Point
		want   float64
	}{
		{"the first point", []iot.Point{pointOf("d", "a", 10, 1)}, 1},
		{"a newer point", []iot.Point{pointOf("d", "a", 20, 2)}, 2},
		{"an older point changes nothing", []iot.Point{pointOf("d", "a", 15, 3)}, 2},
		{"a point a nanosecond older changes nothing", []iot.Point{{DeviceID: "d", SensorID: iot.SensorID("d", "a"), Time: timeAt(20).Add(-1), Value: 4}}, 2},
		{"a point of the same time overwrites", []iot.Point{pointOf("d", "a", 20, 5)}, 5},
		{"the newest point of a batch is stored", []iot.Point{pointOf("d", "a", 40, 7), pointOf("d", "a", 30, 6)}, 7},
		{"the last point of equal times in a batch is stored", []iot.Point{pointOf("d", "a", 50, 8), pointOf("d", "a", 50, 9)}, 9},
		{"no points change nothing", nil, 9},
	} {
		relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, step.points)))
		if got := latest(t, c, "d"); len(got) != 1 || got[0].Value != step.want {
			t.Fatalf("%s: latest = %+v, want %g", step.name, got, step.want)
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
		t.Errorf("latest = %+v, want only %+v", got, warm)
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
	if len(got) != 2 || !slices.ContainsFunc(got, func(p iot.Point) bool { return p.Value == 199 && p.Time.Equal(timeAt(199)) }) ||
		!slices.ContainsFunc(got, func(p iot.Point) bool { return p.Time.Equal(timeAt(200)) }) {
		t.Errorf("latest = %+v, want a point for each of two sensors: 199 at %v, and one at %v", got, timeAt(199), timeAt(200))
	}
}

func latestIsShortened(t *testing.T, c *IoT) {
	relaytest.NoError(t, c.FillLatest(t.Context(), 1, "d", nil, timeAt(0)))
	for i := range 200 {
		relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, []iot.Point{pointOf("d", "a", float64(i), 1), pointOf("d", "b", float64(i), 2)})))
	}
	n, err := c.db.rdb.HLen(t.Context(), keyLatest(1, "d")).Result()
	if err != nil || n > 2*2+spareFields {
		t.Errorf("fields = %d, error = %v, want at most %d", n, err, 2*2+spareFields)
	}
	if _, filled, err := c.Latest(t.Context(), 1, "d"); !filled.Equal(timeAt(0)) {
		t.Errorf("time of the fill = %s, error = %v, want %s", filled, err, timeAt(0))
	}
}

func latestIsFilled(t *testing.T, c *IoT) {
	check := func(label, device string, filled time.Time, points int) {
		t.Helper()
		got, filledAt, err := c.Latest(t.Context(), 1, device)
		relaytest.NoError(t, err)
		relaytest.Equal(t, label+": the time of the fill", filledAt, filled)
		relaytest.Equal(t, label+": the number of points", len(got), points)
	}
	relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, []iot.Point{pointOf("d", "a", 20, 2)})))
	check("a device that was never filled", "d", time.Time{}, 1)
	relaytest.NoError(t, c.FillLatest(t.Context(), 1, "d", []iot.Point{pointOf("d", "b", 5, 1)}, timeAt(30)))
	check("a filled device", "d", timeAt(30), 2)
	relaytest.NoError(t, c.FillLatest(t.Context(), 1, "e", nil, timeAt(30)))
	check("a device without readings", "e", timeAt(30), 0)
	flush(t, c.db)
	check("after the cache was emptied", "d", time.Time{}, 0)
}

func fillOverwritesNothing(t *testing.T, c *IoT) {
	a, b := pointOf("d", "a", 20, 2), pointOf("d", "b", 20, 2)
	relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, []iot.Point{a, b})),
		c.FillLatest(t.Context(), 1, "d", []iot.Point{pointOf("d", "a", 10, 1), pointOf("d", "b", 20, 1)}, timeAt(30)))
	for _, p := range latest(t, c, "d") {
		if p != a && p != b {
			t.Errorf("latest = %+v, want %+v or %+v", p, a, b)
		}
	}
}

func postsAreMerged(t *testing.T, c *IoT) {
	gw := func(id string, rssi, snr *float64) decoders.Gateway {
		return decoders.Gateway{ID: id, RSSI: rssi, SNR: snr}
	}
	posts := []iot.FramePost{
		{Time: timeAt(10), Gateways: []decoders.Gateway{gw("", new(-90.0), new(7.5)), gw("a|b", new(-90.0), new(7.5))}},
		{Gateways: []decoders.Gateway{gw("a|b", new(-80.0), new(7.5)), gw("c", nil, new(-3.25))}, Position: &decoders.Position{Latitude: 51.5, Longitude: -0.125}},
		{Gateways: []decoders.Gateway{gw("a|b", new(-60.0), new(-20.0)), gw("c", new(-118.0), nil), gw("d", nil, nil)}},
	}
	want := iot.MergedFrame{Time: timeAt(10), Position: posts[1].Position, Gateways: []decoders.Gateway{
		gw("", new(-90.0), new(7.5)), gw("a|b", new(-80.0), new(7.5)), gw("c", nil, new(-3.25)), gw("d", nil, nil),
	}}
	for n, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {0, 0, 2, 1, 1, 2}} {
		var got []iot.MergedFrame
		for _, i := range order {
			p := posts[i]
			p.Device, p.Dedup = "dev", fmt.Sprint("f", n)
			var err error
			got, err = c.MergePosts(t.Context(), 1, []iot.FramePost{p}, time.Minute)
			relaytest.NoError(t, err)
		}
		if len(got) != 1 {
			t.Fatalf("order %v: %d results, want %d", order, len(got), 1)
		}
		relaytest.Equal(t, fmt.Sprint("the merged frame in the order ", order), got[0], want)
	}
	var many []iot.FramePost
	for i := range 250 {
		many = append(many, iot.FramePost{Device: fmt.Sprint("dev", i%100), Dedup: fmt.Sprint("f", i), Time: timeAt(float64(i))})
	}
	got, err := c.MergePosts(t.Context(), 2, many, time.Minute)
	relaytest.NoError(t, err)
	for i := range many {
		relaytest.Equal(t, fmt.Sprint("the merged frame of part ", i), got[i], iot.MergedFrame{Time: many[i].Time})
	}
	repeated := iot.FramePost{Device: "dev0", Dedup: "f0", Time: timeAt(99)}
	got, err = c.MergePosts(t.Context(), 2, []iot.FramePost{repeated, {Device: "dev0", Dedup: "g"}}, time.Minute)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the time of a repeated frame", got[0].Time, timeAt(0))
	relaytest.Equal(t, "the time of a frame without data", got[1].Time, time.Time{})
}

func postsExpire(t *testing.T, c *IoT) {
	const window = 2 * time.Hour
	merge := func(offset time.Duration, p iot.FramePost) iot.MergedFrame {
		p.Device, p.Dedup = "dev", "f"
		got, err := c.shifted(offset).MergePosts(t.Context(), 1, []iot.FramePost{p}, window)
		relaytest.NoError(t, err)
		return got[0]
	}
	merge(0, iot.FramePost{Time: timeAt(1), Position: &decoders.Position{Latitude: 1}})
	relaytest.Equal(t, "the frame in the next window", merge(window, iot.FramePost{Time: timeAt(2), Position: &decoders.Position{Latitude: 2}}),
		iot.MergedFrame{Time: timeAt(1), Position: &decoders.Position{Latitude: 2}})
	relaytest.Equal(t, "the frame long after its window", merge(7*window, iot.FramePost{}), iot.MergedFrame{})
}

func heardGoesForward(t *testing.T, c *IoT) {
	for _, seconds := range []float64{20, 10, 20} {
		relaytest.NoError(t, c.SetHeard(t.Context(), map[relay.AccountID]map[string]time.Time{1: map[string]time.Time{"d": timeAt(seconds)}}))
	}
	relaytest.NoError(t, c.FillHeard(t.Context(), 1, map[string]time.Time{"d": timeAt(15), "e": timeAt(7)}, timeAt(40)), c.SetHeard(t.Context(), map[relay.AccountID]map[string]time.Time{1: nil}))
	got, err := c.Heard(t.Context(), 1, []string{"d", "e", "f"})
	want := map[string]iot.LastHeard{"d": {HeardAt: timeAt(20), FilledAt: timeAt(40)}, "e": {HeardAt: timeAt(7), FilledAt: timeAt(40)}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("heard = %v, error = %v, want %v", got, err, want)
	}
	if got, err := c.Heard(t.Context(), 1, nil); err != nil || len(got) != 0 {
		t.Errorf("heard without devices = %v, error = %v, want none", got, err)
	}
}

func deviceWasNeverHeard(t *testing.T, c *IoT) {
	relaytest.NoError(t, c.FillHeard(t.Context(), 1, map[string]time.Time{"d": {}}, timeAt(40)))
	if got, err := c.Heard(t.Context(), 1, []string{"d"}); err != nil || got["d"] != (iot.LastHeard{FilledAt: timeAt(40)}) {
		t.Errorf("heard after the fill = %v, error = %v", got, err)
	}
	relaytest.NoError(t, c.SetHeard(t.Context(), map[relay.AccountID]map[string]time.Time{1: map[string]time.Time{"d": timeAt(50)}}))
	if got, err := c.Heard(t.Context(), 1, []string{"d"}); err != nil || got["d"] != (iot.LastHeard{HeardAt: timeAt(50), FilledAt: timeAt(40)}) {
		t.Errorf("heard after the frame = %v, error = %v", got, err)
	}
}

func deviceIsForgotten(t *testing.T, c *IoT) {
	for _, id := range []string{"d", "e"} {
		relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, []iot.Point{pointOf(id, "a", 20, 2)})), c.FillHeard(t.Context(), 1, map[string]time.Time{id: timeAt(1)}, timeAt(2)))
	}
	relaytest.NoError(t, c.ForgetDevice(t.Context(), 1, "d"))
	heard, err := c.Heard(t.Context(), 1, []string{"d", "e"})
	if err != nil || len(heard) != 1 || len(latest(t, c, "d")) != 0 || len(latest(t, c, "e")) != 1 {
		t.Errorf("heard = %v, error = %v, want only e", heard, err)
	}
}

func accountsAreSeparate(t *testing.T, c *IoT) {
	relaytest.NoError(t, c.SetLatest(t.Context(), pointsOf(1, []iot.Point{pointOf("d", "a", 20, 2)})), c.FillHeard(t.Context(), 1, map[string]time.Time{"d": timeAt(1)}, timeAt(2)))
	points, filled, err := c.Latest(t.Context(), 2, "d")
	heard, err2 := c.Heard(t.Context(), 2, []string{"d"})
	if errors.Join(err, err2) != nil || len(points)+len(heard) > 0 || !filled.IsZero() {
		t.Errorf("points = %v, heard = %v, error = %v, want none", points, heard, errors.Join(err, err2))
	}
}

// keysExpire checks that every key has a time to live.
func keysExpire(t *testing.T, c *IoT) {
	_, err1 := c.Deduplicate(t.Context(), framesOf(1, []iot.FrameKey{{Device: "d", Dedup: "f", RecordID: "r"}}), time.Minute)
	_, err2 := c.MergePosts(t.Context(), 1, []iot.FramePost{{Device: "d", Dedup: "f", Time: timeAt(1)}}, time.Minute)
	relaytest.NoError(t, err1, err2, c.SetLatest(t.Context(), pointsOf(1, []iot.Point{pointOf("d", "a", 1, 1)})), c.FillLatest(t.Context(), 1, "e", nil, timeAt(1)),
		c.SetHeard(t.Context(), map[relay.AccountID]map[string]time.Time{1: map[string]time.Time{"d": timeAt(1)}}), c.FillHeard(t.Context(), 1, map[string]time.Time{"d": timeAt(1)}, timeAt(1)))
	now := spanAt(c.db.now(), time.Minute)
	maxTTL := map[string]time.Duration{
		keySeen(1, shardOf("d", "f"), now): 2 * time.Minute, keyPosts(1, "d", now): 2 * time.Minute,
		keyLatest(1, "d"): latestTTL, keyLatest(1, "e"): latestTTL, keyHeard(1): heardTTL, keyHeardFilled(1): heardTTL,
	}
	for key, limit := range maxTTL {
		ttl, err := c.db.rdb.PTTL(t.Context(), key).Result()
		if err != nil || ttl <= 0 || ttl > limit {
			t.Errorf("time to live of %s = %s, error = %v, want at most %s", key, ttl, err, limit)
		}
	}
}

func TestInvalidFieldsOfLatestAreRefused(t *testing.T) {
	for field, value := range map[string]string{"s": "n|t|1", "s|x": "n|t|1", "s|1": "n|t|one", "s|2": "n", "filled": "x"} {
		if p, _, err := decodeLatest(map[string]string{field: value}); err == nil {
			t.Errorf("field %q with value %q was read as %+v, want an error", field, value, p)
		}
	}
}

// FuzzMergedFrom checks that the fields of a frame are decoded or refused without a panic.
func FuzzMergedFrom(f *testing.F) {
	f.Add("at", "1770000000000000000")
	f.Add("g:7.5|-90|a|b", "")
	f.Add("position", "51.5|-0.125")
	f.Add("position", "51.5|")
	f.Fuzz(func(t *testing.T, name, text string) {
		merged, err := mergedFrom(fieldPrefix("f"), map[string]string{fieldPrefix("f") + name: text, fieldPrefix("f:") + "at": "1"})
		if err == nil && strings.HasPrefix(name, "g:") && len(merged.Gateways) != 1 {
			t.Fatalf("gateways of %q %q = %+v, want one", name, text, merged)
		}
		if err == nil && name == "position" && merged.Position == nil {
			t.Fatalf("position %q was ignored without an error", text)
		}
	})
}
