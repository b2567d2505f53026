package kv

import (
	"fmt"
	"reflect"
	"sync"
	"time"
	"unsafe"

	"github.com/alicebob/miniredis/v2"
)

// tables are miniredis' own maps of database 0. Its API locks, which cannot be
// done while a script runs, has no way to read a key's remaining time exactly,
// and never forgets the version of a key that is gone. So the maps are reached
// directly: the version in go.mod is pinned, newTables checks the shape of every
// field, and all of it is touched under the server's mutex only.
type tables struct {
	types    *map[string]string
	strings  *map[string]string
	hashes   *map[string]map[string]string
	lists    *map[string][]string
	sets     *map[string]map[string]struct{}
	zsets    *map[string]map[string]float64
	streams  *map[string]*stream
	ttl      *map[string]time.Duration
	lru      *map[string]time.Time
	versions *map[string]uint
}

// stream mirrors miniredis' streamKey.
type stream struct {
	entries         []miniredis.StreamEntry
	groups          map[string]unsafe.Pointer
	lastAllocatedID string
	mu              sync.Mutex
}

func newTables(db *miniredis.RedisDB) (tables, error) {
	v := reflect.ValueOf(db).Elem()
	var t tables
	for _, err := range []error{
		field(v, "keys", &t.types), field(v, "stringKeys", &t.strings),
		field(v, "hashKeys", &t.hashes), field(v, "listKeys", &t.lists),
		field(v, "setKeys", &t.sets), field(v, "sortedsetKeys", &t.zsets),
		field(v, "streamKeys", &t.streams), field(v, "ttl", &t.ttl),
		field(v, "lru", &t.lru), field(v, "keyVersion", &t.versions),
	} {
		if err != nil {
			return tables{}, err
		}
	}
	return t, nil
}

func field[T any](v reflect.Value, name string, to **T) error {
	f := v.FieldByName(name)
	if !f.IsValid() || !sameShape(f.Type(), reflect.TypeFor[T]()) {
		return fmt.Errorf("kv: this version of miniredis keeps %s in another form", name)
	}
	*to = (*T)(unsafe.Pointer(f.UnsafeAddr()))
	return nil
}

// sameShape says whether values of both types have the same layout in memory.
func sameShape(a, b reflect.Type) bool {
	if a == b {
		return true
	}
	if b.Kind() == reflect.UnsafePointer {
		return a.Kind() == reflect.Pointer
	}
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case reflect.Map:
		return a.Key() == b.Key() && sameShape(a.Elem(), b.Elem())
	case reflect.Slice, reflect.Pointer:
		return sameShape(a.Elem(), b.Elem())
	case reflect.Struct:
		return sameFields(a, b)
	default:
		return a.Kind() != reflect.Interface && a.Size() == b.Size()
	}
}

func sameFields(a, b reflect.Type) bool {
	if a.NumField() != b.NumField() {
		return false
	}
	for i := range a.NumField() {
		if a.Field(i).Name != b.Field(i).Name || !sameShape(a.Field(i).Type, b.Field(i).Type) {
			return false
		}
	}
	return true
}

// empty says whether a key is a collection without members. Redis has no such
// keys but miniredis leaves them behind, after SINTERSTORE or an XADD that failed.
func (t tables) empty(key string) bool {
	switch (*t.types)[key] {
	case "hash":
		return len((*t.hashes)[key]) == 0
	case "list":
		return len((*t.lists)[key]) == 0
	case "set":
		return len((*t.sets)[key]) == 0
	case "zset":
		return len((*t.zsets)[key]) == 0
	case "stream":
		st := (*t.streams)[key] // one that has had an entry stays
		return len(st.entries) == 0 && st.lastAllocatedID == ""
	}
	return false
}

// tidy drops what a key was before it became of another type. miniredis leaves
// it behind in some commands, and it would come back when the type does.
func (t tables) tidy(key string) {
	is := (*t.types)[key]
	drop(*t.strings, key, is != "string")
	drop(*t.hashes, key, is != "hash")
	drop(*t.lists, key, is != "list")
	drop(*t.sets, key, is != "set")
	drop(*t.zsets, key, is != "zset")
	drop(*t.streams, key, is != "stream")
	drop(*t.ttl, key, is == "")
}

func drop[V any](m map[string]V, key string, yes bool) {
	if yes {
		delete(m, key)
	}
}

// forget drops what miniredis keeps about keys that are gone, once that is more
// than what it keeps about those that are there. WATCH and OBJECT IDLETIME,
// which would use it, are not served.
func (t tables) forget() {
	if len(*t.versions) > 2*len(*t.types)+10_000 {
		clear(*t.versions)
		clear(*t.lru)
	}
}
