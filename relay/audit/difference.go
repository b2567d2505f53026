package audit

import (
	"fmt"
	"reflect"
)

// difference returns the parts of two JSON values that differ; nil, nil if the values are
// equal. It compares the elements of lists by their identities.
func difference(oldValue, newValue any) (oldPart, newPart any) {
	if reflect.DeepEqual(oldValue, newValue) {
		return nil, nil
	}
	switch o := oldValue.(type) {
	case map[string]any:
		if n, ok := newValue.(map[string]any); ok {
			return objectDifference(o, n)
		}
	case []any:
		if n, ok := newValue.([]any); ok {
			return listDifference(o, n)
		}
	}
	return oldValue, newValue
}

func objectDifference(oldObject, newObject map[string]any) (oldPart, newPart any) {
	oldFields, newFields := map[string]any{}, map[string]any{}
	for name, oldValue := range oldObject {
		newValue, ok := newObject[name]
		if !ok {
			oldFields[name] = oldValue
			continue
		}
		if o, n := difference(oldValue, newValue); o != nil || n != nil {
			oldFields[name], newFields[name] = o, n
		}
	}
	for name, newValue := range newObject {
		if _, ok := oldObject[name]; !ok {
			newFields[name] = newValue
		}
	}
	return oldFields, newFields
}

// listDifference compares lists whose elements have distinct identities. It returns other lists
// unchanged.
func listDifference(oldList, newList []any) (oldPart, newPart any) {
	oldByID, ok := elementsByID(oldList)
	newByID, newOK := elementsByID(newList)
	if !ok || !newOK {
		return oldList, newList
	}
	oldElements, newElements := []any{}, []any{}
	for _, oldElement := range oldList {
		newElement, ok := newByID[identity(oldElement)]
		if !ok {
			oldElements = append(oldElements, oldElement)
			continue
		}
		if o, n := difference(oldElement, newElement); o != nil || n != nil {
			oldElements = append(oldElements, withIdentity(o, oldElement))
			newElements = append(newElements, withIdentity(n, newElement))
		}
	}
	for _, newElement := range newList {
		if _, ok := oldByID[identity(newElement)]; !ok {
			newElements = append(newElements, newElement)
		}
	}
	return oldElements, newElements
}

// identifier returns the first field of an element that can identify it, and the value of the
// field; the field is empty if there is none.
func identifier(element any) (field string, id any) {
	object, _ := element.(map[string]any)
	for _, field := range []string{"id", "name", "iccid", "number", "prefix", "key"} {
		if id, ok := object[field]; ok {
			return field, id
		}
	}
	return "", nil
}

// identity returns the identifier of an element as a key; empty if there is none.
func identity(element any) string {
	field, id := identifier(element)
	if field == "" {
		return ""
	}
	return field + "=" + fmt.Sprint(id)
}

// elementsByID returns the elements of a list by their identities; false if an element has no
// identity or two elements have the same identity.
func elementsByID(list []any) (byID map[string]any, ok bool) {
	byID = make(map[string]any, len(list))
	for _, element := range list {
		id := identity(element)
		if _, duplicate := byID[id]; duplicate || id == "" {
			return nil, false
		}
		byID[id] = element
	}
	return byID, true
}

// withIdentity adds the identifying field of an element to its difference.
func withIdentity(part, element any) any {
	if fields, ok := part.(map[string]any); ok {
		field, id := identifier(element)
		fields[field] = id
	}
	return part
}
