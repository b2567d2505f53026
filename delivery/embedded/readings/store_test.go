package readings_test

import (
	"testing"

	"github.com/penstock/penstock/delivery/embedded/readings"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/iot/iottest"
	"github.com/penstock/penstock/relay/relaytest"
)

func open(t testing.TB, dir string) *readings.Store {
	t.Helper()
	s, err := readings.Open(dir, "")
	relaytest.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestReadingsInSQLitePassTheSuite(t *testing.T) {
	iottest.Run(t, func(t *testing.T) iot.ReadingStore { return open(t, t.TempDir()) })
}
