package gateway

import (
	"strings"
	"testing"
	"time"
)

func TestConflicts(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	facts := func(redis, readings, key string) Facts {
		return Facts{Redis: redis, Readings: readings, LedgerKey: key, AdminToken: "a"}
	}
	self := Gateway{Node: "n1", SeenAt: now, Facts: facts("r1", "influx a", "k1")}
	for _, tc := range []struct {
		name   string
		others []Gateway
		want   []string
	}{
		{"alone", []Gateway{self}, nil},
		{"all the same", []Gateway{self, {Node: "n2", SeenAt: now, Facts: self.Facts}}, nil},
		{"another one with its own Redis", []Gateway{{Node: "n2", SeenAt: now, Facts: facts("r2", "influx a", "k1")}}, []string{"redis differs from that of gateway n2: set redis.url"}},
		{"two with other readings and keys", []Gateway{
			{Node: "n3", SeenAt: now, Facts: facts("r1", Embedded+"n3", "k2")}, {Node: "n2", SeenAt: now, Facts: facts("r1", Embedded+"n2", "k1")},
		}, []string{"readings differs from that of gateway n2, n3", "ledger_key differs from that of gateway n3"}},
		{"one that is away", []Gateway{{Node: "n2", SeenAt: now.Add(-time.Minute), Facts: facts("r2", "x", "y")}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Conflicts(&self, tc.others, now)
			if len(got) != len(tc.want) {
				t.Fatalf("%q, want %q", got, tc.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tc.want[i]) {
					t.Errorf("%q, want %q", got[i], tc.want[i])
				}
			}
		})
	}
}
