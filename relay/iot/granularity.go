package iot

import "time"

// Granularity is how wide the buckets of an aggregate are. Buckets are of UTC:
// weeks begin on Monday, months on the first, all others are counted from
// 1970-01-01.
type Granularity string

// The granularities of the specification.
const (
	HalfMinute  Granularity = "half_minute"
	Minute      Granularity = "minute"
	FiveMinutes Granularity = "five_minutes"
	TenMinutes  Granularity = "ten_minutes"
	QuarterHour Granularity = "quarter_hour"
	HalfHour    Granularity = "half_hour"
	Hour        Granularity = "hour"
	ThreeHours  Granularity = "three_hours"
	SixHours    Granularity = "six_hours"
	NineHours   Granularity = "nine_hours"
	HalfDay     Granularity = "half_day"
	Day         Granularity = "day"
	Week        Granularity = "week"
	TenDays     Granularity = "ten_days"
	TwoWeeks    Granularity = "two_weeks"
	Month       Granularity = "month"
)

// Granularities lists them, the narrowest first.
func Granularities() []Granularity {
	return []Granularity{
		HalfMinute, Minute, FiveMinutes, TenMinutes, QuarterHour, HalfHour, Hour, ThreeHours,
		SixHours, NineHours, HalfDay, Day, Week, TenDays, TwoWeeks, Month,
	}
}

const day = 24 * time.Hour

// Width is how long a bucket lasts, and by how much the first one after
// 1970-01-01 00:00:00 UTC begins later: 1970 began on a Thursday, weeks begin
// on Monday. The width is 0 for months, which differ, and for an
// invalid granularity.
func (g Granularity) Width() (width, offset time.Duration) {
	if g == Week {
		return 7 * day, 4 * day
	}
	return map[Granularity]time.Duration{
		HalfMinute: 30 * time.Second, Minute: time.Minute, FiveMinutes: 5 * time.Minute, TenMinutes: 10 * time.Minute,
		QuarterHour: 15 * time.Minute, HalfHour: 30 * time.Minute, Hour: time.Hour, ThreeHours: 3 * time.Hour,
		SixHours: 6 * time.Hour, NineHours: 9 * time.Hour, HalfDay: 12 * time.Hour, Day: day,
		TenDays: 10 * day, TwoWeeks: 14 * day,
	}[g], 0
}

// Start is when the bucket that holds t begins, in UTC.
func (g Granularity) Start(t time.Time) time.Time {
	t = t.UTC()
	width, offset := g.Width()
	if width == 0 {
		return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	into := (t.UnixNano() - int64(offset)) % int64(width)
	if into < 0 {
		into += int64(width)
	}
	return t.Add(-time.Duration(into))
}

// Next is when the bucket after the one that holds t begins.
func (g Granularity) Next(t time.Time) time.Time {
	start := g.Start(t)
	if width, _ := g.Width(); width > 0 {
		return start.Add(width)
	}
	return start.AddDate(0, 1, 0)
}
