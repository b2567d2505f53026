package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

func claimsHold(t *testing.T, s *IoT) {
	claim := func(acct account.ID, record string, dedup ...string) []string {
		var frames []iot.Seen
		for _, d := range dedup {
			frames = append(frames, iot.Seen{Device: eui, Dedup: d, Record: record})
		}
		first, err := s.Claim(t.Context(), acct, frames, time.Hour)
		mustDo(t, err)
		return first
	}
	for _, step := range []struct {
		what, record string
		acct         account.ID
		dedup, want  []string
	}{
		{"two new frames", "n1-u1", 1, []string{"a", "b"}, []string{"n1-u1", "n1-u1"}},
		{"a later record", "n1-u2", 1, []string{"c", "a"}, []string{"n1-u2", "n1-u1"}},
		{"the same record again", "n1-u1", 1, []string{"a"}, []string{"n1-u1"}},
		{"one frame twice in a batch", "n1-u3", 1, []string{"d", "d"}, []string{"n1-u3", "n1-u3"}},
		{"another account", "n1-u4", 2, []string{"a"}, []string{"n1-u4"}},
	} {
		if got := claim(step.acct, step.record, step.dedup...); !slices.Equal(got, step.want) {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
	}
}

func claimsEnd(t *testing.T, s *IoT) {
	_, err := s.Claim(t.Context(), 1, []iot.Seen{{Device: eui, Dedup: "a", Record: "r"}}, 2*time.Hour)
	claimed, claimedErr := s.Claimed(t.Context(), 1, []iot.Seen{{Device: eui, Dedup: "new"}, {Device: eui, Dedup: "a", Record: "other"}})
	if mustDo(t, claimedErr); claimed[0] != "" || claimed[1] == "" || claimed[1] == "other" {
		t.Errorf("claimed by %q", claimed)
	}
	ttl, err2 := s.db.rdb.TTL(t.Context(), keySeen(1, eui, "a")).Result()
	if errors.Join(err, err2) != nil || ttl <= time.Hour || ttl > 2*time.Hour {
		t.Errorf("ends after %s, %v", ttl, errors.Join(err, err2))
	}
}

func manyClaims(t *testing.T, s *IoT) {
	frames := make([]iot.Seen, 3000)
	for i := range frames {
		frames[i] = iot.Seen{Device: eui, Dedup: fmt.Sprint(i % 2500), Record: fmt.Sprint(i)}
	}
	first, err := s.Claim(t.Context(), 1, frames, time.Hour)
	mustDo(t, err)
	for i, record := range first {
		if record != fmt.Sprint(i%2500) {
			t.Fatalf("frame %d is %s's", i, record)
		}
	}
}
