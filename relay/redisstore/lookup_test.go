package redisstore

import (
	"reflect"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/lookup"
)

var _ lookup.Cache = (*Lookups)(nil)

func TestLookups(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(t *testing.T) *DB) {
		s, ctx := open(t).Lookups(), t.Context()
		said := lookup.Result{Number: "447700900123", Code: lookup.Absent, MCC: "234", MNC: "15", Network: "Example", Ported: true}
		if _, err := s.Remembered(ctx, said.Number); relay.KindOf(err) != relay.KindNotFound {
			t.Error(err)
		}
		if err := s.Remember(ctx, said, time.Hour); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Remembered(ctx, said.Number); err != nil || got != said {
			t.Errorf("%+v, %v", got, err)
		}
		if ttl, err := s.db.rdb.PTTL(ctx, keyLookup("447700900123")).Result(); err != nil || ttl <= 0 || ttl > time.Hour {
			t.Errorf("kept for %v, %v", ttl, err)
		}
		want := []lookup.Network{{Prefix: "44", MCC: "234", MNC: "30", Name: "Other"}, {Prefix: "447", MCC: "234", MNC: "15", Name: "Example", Country: "United Kingdom"}}
		for _, n := range []lookup.Network{want[1], want[0], want[0]} {
			if err := s.PutNetwork(ctx, n); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.Networks(ctx); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
		if err := s.DeleteNetwork(ctx, "44"); err != nil {
			t.Error(err)
		}
		if err := s.DeleteNetwork(ctx, "44"); relay.KindOf(err) != relay.KindNotFound {
			t.Error(err)
		}
	})
}
