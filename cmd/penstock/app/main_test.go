package app

import (
	"os"
	"testing"

	"github.com/penstock/penstock/delivery/codec"
)

// The test binary is also the program that gateways start as codec workers.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == codec.WorkerCommand {
		os.Exit(workerMain())
	}
	os.Exit(m.Run())
}
