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

// maxDocument bounds each JSON of an entry, in bytes.
const maxDocument = 64 << 10

// secret reports whether the values under a name are secrets.
func secret(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"password", "secret", "token", "credential", "authorization"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return slices.Contains([]string{"pin", "pin2", "puk", "puk2"}, name)
}

// Document returns a value as JSON for an entry: secrets and the queries of URLs masked,
// and values that are too long replaced by their sizes. It returns nil for a nil value.
func Document(v any) json.RawMessage {
	plain, err := generic(v)
	if err != nil || plain == nil {
		return nil
	}
	return encode(redact("", plain))
}

// Changes returns two values as JSON for an entry, as far as they differ.
func Changes(before, after any) (was, is json.RawMessage) {
	a, errBefore := generic(before)
	b, errAfter := generic(after)
	if errBefore != nil || errAfter != nil {
		return nil, nil
	}
	a, b = redact("", a), redact("", b)
	if a != nil && b != nil {
		a, b = difference(a, b)
	}
	return encode(a), encode(b)
}

// generic returns a value as encoding/json reads its JSON.
func generic(v any) (out any, err error) {
	if v == nil {
		return nil, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	err = json.Unmarshal(raw, &out)
	return out, err
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

// redact masks the secrets of a value with a name.
func redact(name string, v any) any {
	if strings.HasPrefix(name, "private_") && v != nil {
		return mask
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, one := range v {
			out[k] = redact(k, one)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = redact(name, one)
		}
		return out
	case string:
		switch {
		case v == "":
			return v
		case secret(name):
			return mask
		}
		return outbox.MaskTarget(v)
	case nil, bool:
		return v
	}
	if secret(name) {
		return mask
	}
	return v
}
