package admin

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestTheNumberOfAccountsWithMetricsIsBounded(t *testing.T) {
	accounts := make([]AccountFigures, maxAccountsWithMetrics+5)
	for i := range accounts {
		accounts[i].ID++
		accounts[i].ID += accounts[max(0, i-1)].ID
	}
	c := NewAccountCollector(func() []AccountFigures { return accounts })
	relaytest.Equal(t, "the number of series of a metric", testutil.CollectAndCount(c, "penstock_account_devices"), maxAccountsWithMetrics)
}
