package grafana

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

var update = flag.Bool("update", false, "write the dashboards' files")

func TestTheFilesAreTheDashboards(t *testing.T) {
	for name, d := range All() {
		want, err := Encode(d)
		relaytest.NoError(t, err)
		file := filepath.Join("dashboards", name+".json")
		if *update {
			relaytest.NoError(t, os.WriteFile(file, want, 0o600))
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what is generated; go test ./deploy/grafana -update writes it (%v)", file, err)
		}
	}
	files, err := filepath.Glob("dashboards/*.json")
	if err != nil || len(files) != len(All()) {
		t.Errorf("there are the files %q (%v)", files, err)
	}
}
