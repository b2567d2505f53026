package app

import (
	"os"
	"testing"

	"github.com/penstock/penstock/delivery/codec"
)

// TestMain runs a codec worker if a gateway has started the test binary as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == codec.WorkerCommand {
		os.Exit(workerMain())
	}
	os.Exit(m.Run())
}
