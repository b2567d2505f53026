package app

import (
	"os"
	"testing"

	"github.com/penstock/penstock/delivery/codec"
)

// Gateways start the test binary as their codec workers.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == codec.WorkerCommand {
		os.Exit(workerMain())
	}
	os.Exit(m.Run())
}
