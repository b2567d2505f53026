package iot

import "slices"

// pointKey identifies a point in a reading store: a sensor and a time. The store
// keeps one value for each.
type pointKey struct {
	identifier, key string
	ns              int64
}

// uniqueTimes makes the times of a post's readings unique within each sensor. If a
// codec returns a key twice, or a sender reports several values for one second,
// the later value is stored a nanosecond after the earlier one instead of
// overwriting it. The same post always gets the same times.
func (b *batch) uniqueTimes() {
	seen := make(map[pointKey]bool)
	for start, end := 0, 0; start < len(b.all); start = end {
		for end = start + 1; end < len(b.all) && b.all[start].Post != "" && b.all[end].Post == b.all[start].Post; {
			end++
		}
		post := b.all[start:end]
		if len(post) == 1 && len(post[0].points) < 2 {
			continue
		}
		clear(seen)
		if hasCollision(post, seen) {
			spreadTimes(post)
		}
	}
}

// hasCollision reports whether a reading of a post would overwrite another.
func hasCollision(post []*work, seen map[pointKey]bool) bool {
	for _, w := range post {
		for i := range w.points {
			p := &w.points[i]
			key := pointKey{p.Identifier, p.Key, p.Time.UnixNano()}
			if seen[key] {
				return true
			}
			seen[key] = true
		}
	}
	return false
}

// spreadTimes moves readings after those of the same sensor and time.
func spreadTimes(post []*work) {
	sensors := make(map[pointKey][]*Point)
	for _, w := range post {
		for i := range w.points {
			p := &w.points[i]
			sensor := pointKey{identifier: p.Identifier, key: p.Key}
			sensors[sensor] = append(sensors[sensor], p)
		}
	}
	for _, points := range sensors {
		slices.SortStableFunc(points, func(a, b *Point) int { return a.Time.Compare(b.Time) })
		for i, p := range points[1:] {
			if before := points[i].Time; !p.Time.After(before) {
				p.Time = before.Add(1)
			}
		}
	}
}
