// Package sms tests inbound messages, their relays, deliveries and attempts, end to end.
package sms

import (
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestGateway runs every suite of this folder on every site.
func TestGateway(t *testing.T) {
	e2e.RunSuites(t, []e2e.Suite{
		{Name: "messages", Run: testMessages},
		{Name: "placeholders", Run: testPlaceholders},
		{Name: "mails", Run: testMails},
		{Name: "routes", Run: testRoutes},
		{Name: "attempts", Run: testAttempts},
		{Name: "egress", Run: testEgress},
		{Name: "breaker", Run: testBreaker},
	})
}
