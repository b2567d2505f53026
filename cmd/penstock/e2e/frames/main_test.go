// Package frames tests devices, decoders, readings and the webhooks of network servers, end
// to end.
package frames

import (
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestGateway runs every suite of this folder on every site.
func TestGateway(t *testing.T) {
	e2e.RunSuites(t, []e2e.Suite{
		{Name: "frames", Run: testFrames},
		{Name: "the generic webhook", Run: testGeneric},
		{Name: "posts of many readings", Run: testPosts},
		{Name: "frames reported in several posts", Run: testSupplements},
		{Name: "lost frames", Run: testLoss},
		{Name: "quarantine", Run: testQuarantine},
		{Name: "a decoder that is corrected", Run: testCorrectedDecoder},
		{Name: "a codec that never ends", Run: testEndlessCodec},
		{Name: "a codec's clock", Run: testCodecClock},
		{Name: "retention at the start", Run: testRetentionAtStart},
		{Name: "a codec of a megabyte", Run: testLongSource},
		{Name: "readings", Run: testReadings},
		{Name: "decoders", Run: testDecoders},
		{Name: "devices", Run: testDevices},
		{Name: "credentials", Run: testCredentials},
		{Name: "isolation of accounts", Run: testIsolation},
	})
}
