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
	last := ""
	for i := range 1000 {
		id := NewID(now.Add(time.Duration(i) * time.Millisecond))
		if len(id) != 26 || strings.Trim(id, "0123456789abcdefghjkmnpqrstvwxyz") != "" {
			t.Fatalf("%q", id)
		}
		if id <= last || seen[id] {
			t.Fatalf("%q after %q", id, last)
		}
		seen[id], last = true, id
	}
	if NewID(time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)) <= last {
		t.Error("the year 2999 is earlier")
	}
	last = NewID(now)
	for range 100_000 { // more than one millisecond orders
		id := NewID(now)
		if id <= last {
			t.Fatalf("%q follows %q of the same moment", id, last)
		}
		last = id
	}
}

func TestUUIDsAreOfVersion7(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	last := ""
	for i := range 1000 {
		id := NewUUID(now.Add(time.Duration(i) * time.Millisecond))
		if !form.MatchString(id) || id <= last {
			t.Fatalf("%q after %q", id, last)
		}
		last = id
	}
	for range 1000 {
		id := NewUUID(now)
		if !form.MatchString(id) || id <= last {
			t.Fatalf("%q follows %q of the same moment", id, last)
		}
		last = id
	}
}
