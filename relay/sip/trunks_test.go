package sip_test

import (
	"testing"

	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sip"
)

func TestTrunks(t *testing.T) {
	dbtest.Each(t, sip.NewTrunks, map[string]func(*testing.T, *sip.Trunks){
		"trunks are replaced": trunksAreReplaced,
	})
}

func trunksAreReplaced(t *testing.T, trunks *sip.Trunks) {
	trunk1, trunk2 := sip.Trunk{SourceIPs: []string{"192.0.2.1", "2001:db8::1"}}, sip.Trunk{SourceIPs: []string{"192.0.2.2"}}
	relaytest.NoError(t, trunks.PutTrunks(t.Context(), 2, []sip.Trunk{trunk2}))
	for _, want := range [][]sip.Trunk{nil, {trunk1, trunk2}, {trunk2, trunk1}, {trunk2, trunk1}, nil, nil} {
		relaytest.NoError(t, trunks.PutTrunks(t.Context(), 1, want))
		relaytest.Equal(t, "the trunks", relaytest.Must(trunks.Trunks(t.Context(), 1))(t), want)
	}
	relaytest.Equal(t, "the trunks of another account", relaytest.Must(trunks.Trunks(t.Context(), 2))(t), []sip.Trunk{trunk2})
}
