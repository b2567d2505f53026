// Package iso8601 parses times of ISO 8601-1:2019: a day of a month,
// of a year or of a week, with or without a time of day, in the basic or
// the extended format:
//
//	2026-11-20T09:34:15.25+01:00   20261120T093415Z   2026-11-20T09:34   2026-324   2026-W47-5
//
// A time may omit seconds and minutes, and may have a fraction in its last
// part; 24:00 is the end of a day. Without a zone it is UTC. A day without a time is the start
// of the day. As in RFC 3339, T may be a blank or a small letter, and Z a small letter.
// Texts without a day, such as 2026-11, durations and intervals are refused.
package iso8601

import (
	"strings"
	"time"
)

// Parse parses a time to the nanosecond and returns it in UTC.
func Parse(text string) (time.Time, bool) {
	s := scanner{remaining: text}
	day, ok := s.day()
	if !ok || s.remaining == "" {
		return day, ok
	}
	if !s.skip("Tt ") {
		return time.Time{}, false
	}
	clock, ok := s.clock()
	if !ok {
		return time.Time{}, false
	}
	east, ok := s.zone()
	if !ok || s.remaining != "" {
		return time.Time{}, false
	}
	return day.Add(clock - east), true
}

// ParseDay parses a day without a time and returns its start in UTC.
func ParseDay(text string) (time.Time, bool) {
	s := scanner{remaining: text}
	day, ok := s.day()
	return day, ok && s.remaining == ""
}

// scanner parses a text from its start.
type scanner struct{ remaining string }

// skip skips the next character if it is one of chars.
func (s *scanner) skip(chars string) bool {
	if s.remaining == "" || strings.IndexByte(chars, s.remaining[0]) < 0 {
		return false
	}
	s.remaining = s.remaining[1:]
	return true
}

// digits returns the number of digits at the start.
func (s *scanner) digits() int {
	return len(s.remaining) - len(strings.TrimLeft(s.remaining, "0123456789"))
}

// number parses the next count digits. ok is false if there are fewer digits.
func (s *scanner) number(count int) (n int, ok bool) {
	if s.digits() < count {
		return 0, false
	}
	for _, c := range []byte(s.remaining[:count]) {
		n = n*10 + int(c-'0')
	}
	s.remaining = s.remaining[count:]
	return n, true
}

func (s *scanner) day() (time.Time, bool) {
	year, ok := s.number(4)
	if !ok {
		return time.Time{}, false
	}
	extended := s.skip("-")
	switch {
	case s.skip("W"):
		return s.dayOfWeek(year, extended)
	case s.digits() == 3:
		value, _ := s.number(3)
		t := time.Date(year, time.January, value, 0, 0, 0, 0, time.UTC)
		return t, t.Year() == year && value > 0
	}
	month, ok := s.number(2)
	if !ok || extended && !s.skip("-") || s.digits() != 2 {
		return time.Time{}, false
	}
	value, _ := s.number(2)
	t := time.Date(year, time.Month(month), value, 0, 0, 0, 0, time.UTC)
	return t, int(t.Month()) == month && t.Day() == value
}

// dayOfWeek parses a week and a day, 1 for Monday. The first week of a year contains 4 January.
func (s *scanner) dayOfWeek(year int, extended bool) (time.Time, bool) {
	week, ok := s.number(2)
	if !ok || extended && !s.skip("-") {
		return time.Time{}, false
	}
	value, ok := s.number(1)
	fourth := time.Date(year, time.January, 4, 0, 0, 0, 0, time.UTC)
	monday := (int(fourth.Weekday()) + 6) % 7 // days since Monday
	t := fourth.AddDate(0, 0, (week-1)*7+value-1-monday)
	isoYear, isoWeek := t.ISOWeek()
	return t, ok && value >= 1 && value <= 7 && isoYear == year && isoWeek == week
}

// clock parses a time of day and returns the time since the start of the day.
func (s *scanner) clock() (time.Duration, bool) {
	hour, ok := s.number(2)
	elapsed, precision := time.Duration(hour)*time.Hour, time.Hour
	extended := strings.HasPrefix(s.remaining, ":")
	for _, unit := range []time.Duration{time.Minute, time.Second} {
		if extended && !s.skip(":") || !extended && s.digits() == 0 {
			break
		}
		n, found := s.number(2)
		leap := n == 60 && unit == time.Second && elapsed%time.Hour == 59*time.Minute // counts as the next second
		ok = ok && found && (n < 60 || leap)
		elapsed, precision = elapsed+time.Duration(n)*unit, unit
	}
	part, found := s.fraction(precision)
	elapsed += part
	return elapsed, ok && found && (hour < 24 || elapsed == 24*time.Hour)
}

// fraction parses an optional fraction of a unit, rounded down to nanoseconds.
func (s *scanner) fraction(unit time.Duration) (part time.Duration, ok bool) {
	if !s.skip(".,") {
		return 0, true
	}
	n := s.digits()
	for i, scale := 0, time.Second; i < n; i++ {
		digit, _ := s.number(1)
		scale /= 10
		part += time.Duration(digit) * scale * (unit / time.Second)
	}
	return part, n > 0
}

// zone parses an optional time zone and returns its offset east of UTC.
func (s *scanner) zone() (time.Duration, bool) {
	if s.remaining == "" || s.skip("Zz") {
		return 0, true
	}
	east := time.Duration(1)
	if s.skip("-") {
		east = -1
	} else if !s.skip("+") {
		return 0, false
	}
	hours, ok := s.number(2)
	if !ok || hours > 23 {
		return 0, false
	}
	minutes, extended := 0, s.skip(":")
	if extended || s.remaining != "" {
		if minutes, ok = s.number(2); !ok || minutes > 59 {
			return 0, false
		}
	}
	return east * (time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute), true
}
