package gateway

import (
	"strings"
	"testing"
	"time"
)

func TestConflictsNamesDifferingSettings(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	facts := func(redis, readings, key string) Facts {
		return Facts{Redis: redis, Readings: readings, LedgerKey: key, AdminToken: "a"}
	}
	self := Gateway{Node: "n1", SeenAt: now, Facts: facts("r1", "influx a", "k1")}
	for _, tc := range []struct {
		name     string
		gateways []Gateway
		want     []string
	}{
		{"one gateway", []Gateway{self}, nil},
		{"equal settings", []Gateway{self, {Node: "n2", SeenAt: now, Facts: self.Facts}}, nil},
		{"a gateway with another Redis", []Gateway{{Node: "n2", SeenAt: now, Facts: facts("r2", "influx a", "k1")}}, []string{"redis differs from that of gateway n2: set redis.url"}},
		{"two gateways with other readings and keys", []Gateway{
			{Node: "n3", SeenAt: now, Facts: facts("r1", Embedded+"n3", "k2")}, {Node: "n2", SeenAt: now, Facts: facts("r1", Embedded+"n2", "k1")},
		}, []string{"readings differs from that of gateway n2, n3", "ledger_key differs from that of gateway n3"}},
		{"a gateway without recent heartbeats", []Gateway{{Node: "n2", SeenAt: now.Add(-time.Minute), Facts: facts("r2", "x", "y")}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Conflicts(&self, tc.gateways, now)
			if len(got) != len(tc.want) {
				t.Fatalf("conflicts = %q, want %q", got, tc.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tc.want[i]) {
					t.Errorf("conflict %d = %q, want prefix %q", i, got[i], tc.want[i])
				}
			}
		})
	}
}
