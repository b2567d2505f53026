package db_test

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAnOlderServerIsRefused(t *testing.T) {
	known := db.Server{Host: "b:5432", System: "7", Timeline: 2}
	for _, tc := range []struct {
		name         string
		known, found db.Server
		refused      string
		newer        bool
	}{
		{"the first server", db.Server{}, known, "", true},
		{"the same server", known, known, "", false},
		{"a promoted standby", known, db.Server{Host: "c:5432", System: "7", Timeline: 3}, "", true},
		{"an old primary", known, db.Server{Host: "a:5432", System: "7", Timeline: 1}, "a:5432 is refused: it is an old primary (timeline 1), since b:5432 was promoted (timeline 2)", false},
		{"another server", known, db.Server{Host: "a:5432", System: "8", Timeline: 9}, "a:5432 is refused: it is another PostgreSQL (system identifier 8) than b:5432 (7)", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.known.Refuse(tc.found)
			if (err != nil) != (tc.refused != "") || err != nil && !strings.HasPrefix(err.Error(), tc.refused) {
				t.Errorf("error = %v, want %q", err, tc.refused)
			}
			relaytest.Equal(t, "whether the found server is newer", tc.known.Newer(tc.found) == tc.found && tc.found != tc.known, tc.newer)
		})
	}
}

func TestAnAcceptedOldServerIsNewer(t *testing.T) {
	promoted := db.Server{Host: "b:5432", System: "7", Timeline: 2}
	restored := db.Server{Host: "a:5432", System: "7", Timeline: 1, Accepted: 1}
	relaytest.Equal(t, "the newer server for a gateway that knows the promoted one", promoted.Newer(restored), restored)
	relaytest.Equal(t, "the newer server for a gateway that knows the accepted one", restored.Newer(promoted), restored)
}
