package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay/outbox"
)

// mask replaces a secret.
const mask = "***"

// maxDocument is the largest length of a JSON document of an entry, in bytes.
const maxDocument = 64 << 10

// isSecret reports whether the values under a name are secrets.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"password", "secret", "token", "credential", "authorization"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return slices.Contains([]string{"pin", "pin2", "puk", "puk2"}, name)
}

// Document returns a value as JSON for an entry. It masks secrets and the queries of URLs, and
// replaces a long value with its size. It returns nil for a nil value.
func Document(v any) json.RawMessage {
	value, err := jsonValue(v)
	if err != nil || value == nil {
		return nil
	}
	return encode(redact("", value))
}

// Changes returns the parts of two values that differ, in the form of Document.
func Changes(oldValue, newValue any) (oldPart, newPart json.RawMessage) {
	o, errOld := jsonValue(oldValue)
	n, errNew := jsonValue(newValue)
	if errOld != nil || errNew != nil {
		return nil, nil
	}
	o, n = redact("", o), redact("", n)
	if o != nil && n != nil {
		o, n = difference(o, n)
	}
	return encode(o), encode(n)
}

// jsonValue returns a value as encoding/json decodes its JSON.
func jsonValue(v any) (value any, err error) {
	if v == nil {
		return nil, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	err = json.Unmarshal(raw, &value)
	return value, err
}

func encode(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	if len(raw) > maxDocument {
		raw, _ = json.Marshal(map[string]any{"omitted": fmt.Sprintf("%d bytes", len(raw))})
	}
	return raw
}

// redact masks the secrets and the queries of URLs in the value of a field.
func redact(name string, v any) any {
	if strings.HasPrefix(name, "private_") && v != nil {
		return mask
	}
	switch v := v.(type) {
	case map[string]any:
		fields := make(map[string]any, len(v))
		for field, value := range v {
			fields[field] = redact(field, value)
		}
		return fields
	case []any:
		elements := make([]any, len(v))
		for i, element := range v {
			elements[i] = redact(name, element)
		}
		return elements
	case string:
		switch {
		case v == "":
			return v
		case isSecret(name):
			return mask
		}
		return outbox.MaskTarget(v)
	case nil, bool:
		return v
	}
	if isSecret(name) {
		return mask
	}
	return v
}
