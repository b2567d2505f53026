package relay

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestIDsSortByTimeAndDiffer(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	seen := map[string]bool{}
	lastID := ""
	for i := range 1000 {
		id := NewID(now.Add(time.Duration(i) * time.Millisecond))
		if len(id) != 26 || strings.Trim(id, "0123456789abcdefghjkmnpqrstvwxyz") != "" {
			t.Fatalf("id %q is not 26 letters and digits", id)
		}
		if id <= lastID || seen[id] {
			t.Fatalf("id %q follows %q", id, lastID)
		}
		seen[id], lastID = true, id
	}
	if NewID(time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)) <= lastID {
		t.Error("an id of 2999 sorts before earlier ids")
	}
	lastID = NewID(now)
	for range 100_000 { // more than the ticks of a millisecond
		id := NewID(now)
		if id <= lastID {
			t.Fatalf("id %q follows %q at the same time", id, lastID)
		}
		lastID = id
	}
}

func TestUUIDsAreOfVersion7(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pattern := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	lastID := ""
	for i := range 1000 {
		id := NewUUID(now.Add(time.Duration(i) * time.Millisecond))
		if !pattern.MatchString(id) || id <= lastID {
			t.Fatalf("id %q follows %q", id, lastID)
		}
		lastID = id
	}
	for range 1000 {
		id := NewUUID(now)
		if !pattern.MatchString(id) || id <= lastID {
			t.Fatalf("id %q follows %q at the same time", id, lastID)
		}
		lastID = id
	}
}
