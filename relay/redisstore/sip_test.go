package redisstore

import (
	"reflect"
	"testing"

	"github.com/penstock/penstock/relay/sip"
)

func TestTrunks(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(t *testing.T) *DB) {
		s, ctx := open(t).Trunks(), t.Context()
		for _, want := range [][]sip.Trunk{nil, {{SourceIPs: []string{"192.0.2.1", "2001:db8::1"}}, {SourceIPs: []string{"192.0.2.2"}}}, nil} {
			if err := s.PutTrunks(ctx, 1, want); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Trunks(ctx, 1); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, %v", got, err)
			}
		}
	})
}
