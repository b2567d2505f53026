package grafana

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the dashboards' files")

func TestTheFilesAreTheDashboards(t *testing.T) {
	for name, d := range All() {
		want, err := Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("dashboards", name+".json")
		if *update {
			if err := os.WriteFile(file, want, 0o600); err != nil {
				t.Fatal(err)
			}
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
