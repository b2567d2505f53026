package db_test

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAnOlderServerIsRefused(t *testing.T) {
	current := db.Server{Host: "b:5432", System: "7", Timeline: 2}
	for _, tc := range []struct {
		name           string
		current, found db.Server
		refused        string
		newer          bool
	}{
		{"the first server", db.Server{}, current, "", true},
		{"the same server", current, current, "", false},
		{"a promoted standby", current, db.Server{Host: "c:5432", System: "7", Timeline: 3}, "", true},
		{"an old primary", current, db.Server{Host: "a:5432", System: "7", Timeline: 1}, "a:5432 is refused: it is an old primary (timeline 1), since b:5432 was promoted (timeline 2)", false},
		{"another server", current, db.Server{Host: "a:5432", System: "8", Timeline: 9}, "a:5432 is refused: it is another PostgreSQL (system identifier 8) than b:5432 (7)", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.current.Refuse(tc.found)
			if (err != nil) != (tc.refused != "") || err != nil && !strings.HasPrefix(err.Error(), tc.refused) {
				t.Errorf("error = %v, want %q", err, tc.refused)
			}
			relaytest.Equal(t, "whether the found server is newer", tc.current.Newer(tc.found) == tc.found && tc.found != tc.current, tc.newer)
		})
	}
}

func TestAnAcceptedOldServerIsNewer(t *testing.T) {
	promoted := db.Server{Host: "b:5432", System: "7", Timeline: 2}
	restored := db.Server{Host: "a:5432", System: "7", Timeline: 1, Accepted: 1}
	relaytest.Equal(t, "the newer server for a gateway that knows the promoted one", promoted.Newer(restored), restored)
	relaytest.Equal(t, "the newer server for a gateway that knows the accepted one", restored.Newer(promoted), restored)
}
