package audit

import (
	"fmt"
	"reflect"
)

// difference returns two values without what is the same in both; nil, nil if they are
// equal. Elements of lists are compared by what identifies them.
func difference(before, after any) (was, is any) {
	if reflect.DeepEqual(before, after) {
		return nil, nil
	}
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			return objects(b, a)
		}
	case []any:
		if a, ok := after.([]any); ok {
			return lists(b, a)
		}
	}
	return before, after
}

func objects(before, after map[string]any) (was, is any) {
	b, a := map[string]any{}, map[string]any{}
	for name, old := range before {
		now, there := after[name]
		if !there {
			b[name] = old
			continue
		}
		if o, n := difference(old, now); o != nil || n != nil {
			b[name], a[name] = o, n
		}
	}
	for name, now := range after {
		if _, there := before[name]; !there {
			a[name] = now
		}
	}
	return b, a
}

// lists compares lists whose elements are identified, each by another text; others it
// returns whole.
func lists(before, after []any) (was, is any) {
	old, ok := identified(before)
	now, also := identified(after)
	if !ok || !also {
		return before, after
	}
	b, a := []any{}, []any{}
	for _, one := range before {
		id := identity(one)
		next, there := now[id]
		if !there {
			b = append(b, one)
			continue
		}
		if o, n := difference(one, next); o != nil || n != nil {
			b, a = append(b, named(o, one)), append(a, named(n, one))
		}
	}
	for _, one := range after {
		if _, there := old[identity(one)]; !there {
			a = append(a, one)
		}
	}
	return b, a
}

// identifiers are the fields that identify an element, the first that it has.
func identifiers() []string { return []string{"id", "name", "iccid", "number", "prefix", "key"} }

// identity returns what identifies an element, "" if nothing does.
func identity(v any) string {
	object, _ := v.(map[string]any)
	for _, field := range identifiers() {
		if id, there := object[field]; there {
			return field + "=" + fmt.Sprint(id)
		}
	}
	return ""
}

// identified finds the elements of a list; ok is false if one has no identity or two
// have the same.
func identified(list []any) (byID map[string]any, ok bool) {
	byID = make(map[string]any, len(list))
	for _, one := range list {
		id := identity(one)
		if _, twice := byID[id]; twice || id == "" {
			return nil, false
		}
		byID[id] = one
	}
	return byID, true
}

// named adds to the difference of an element what identifies it.
func named(diff, of any) any {
	object, isObject := diff.(map[string]any)
	whole, _ := of.(map[string]any)
	if !isObject {
		return diff
	}
	for _, field := range identifiers() {
		if id, there := whole[field]; there {
			object[field] = id
			break
		}
	}
	return object
}
