package iot

import (
	"fmt"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func unmappedAreCounted(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDecoder(t.Context(), 1, Decoder{ID: "u1"}), s.CreateDecoder(t.Context(), 1, Decoder{ID: "u2"}))
	newCounts := func(minute int) map[Ref]map[string]UnmappedKey {
		unmapped := func(key string) map[string]UnmappedKey {
			return map[string]UnmappedKey{key: {Key: key, LastSeen: dbtest.TimeAt(float64(minute)), Count: 2}}
		}
		return map[Ref]map[string]UnmappedKey{{Account: 1, ID: "u1"}: unmapped("a"), {Account: 1, ID: "u2"}: unmapped("b"), {Account: 1, ID: "gone"}: unmapped("c")}
	}
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = s.AddUnmapped(t.Context(), newCounts(i), dbtest.TimeAt(-1)) })
	}
	wg.Wait()
	relaytest.NoError(t, errs...)
	got, err := s.Unmapped(t.Context(), 1, "u1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the keys", got, []UnmappedKey{{Key: "a", LastSeen: dbtest.TimeAt(7), Count: 16}})

	manyKeys := map[string]UnmappedKey{}
	for i := range MaxUnmappedKeys {
		key := fmt.Sprint("k", i)
		manyKeys[key] = UnmappedKey{Key: key, LastSeen: dbtest.TimeAt(9), Count: 1}
	}
	relaytest.NoError(t, s.AddUnmapped(t.Context(), map[Ref]map[string]UnmappedKey{{Account: 1, ID: "u1"}: manyKeys}, dbtest.TimeAt(8)))
	got, err = s.Unmapped(t.Context(), 1, "u1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of keys", len(got), MaxUnmappedKeys)
	relaytest.Equal(t, "the time of the last key", got[len(got)-1].LastSeen, dbtest.TimeAt(9))
	gone, err := s.Unmapped(t.Context(), 1, "gone")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of keys of a decoder that does not exist", len(gone), 0)
}

// unmappedKeysWithTheSameStoredString adds two keys that are stored as one because PostgreSQL cannot
// store NUL in a text.
func unmappedKeysWithTheSameStoredString(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDecoder(t.Context(), 1, Decoder{ID: "u3"}))
	keys := map[string]UnmappedKey{}
	for i, key := range []string{"a\x00", "a\uFFFD"} {
		keys[key] = UnmappedKey{Key: key, LastSeen: dbtest.TimeAt(float64(i)), Count: 2}
	}
	relaytest.NoError(t, s.AddUnmapped(t.Context(), map[Ref]map[string]UnmappedKey{{Account: 1, ID: "u3"}: keys}, dbtest.TimeAt(-1)))
	got, err := s.Unmapped(t.Context(), 1, "u3")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the keys", got, []UnmappedKey{{Key: "a\uFFFD", LastSeen: dbtest.TimeAt(1), Count: 4}})
}
