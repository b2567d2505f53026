package inventory

import (
	"bytes"
	"fmt"

	"github.com/penstock/penstock/config/strict"
)

// EncodeYAML writes the document as people write it, with a comment of one line
// before it.
func EncodeYAML(d Document, comment string) ([]byte, error) {
	text, err := Encode(d)
	if err != nil {
		return nil, err
	}
	body, err := strict.YAML(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, _ = fmt.Fprintf(&out, "# %s\n", comment)
	out.Write(body)
	return out.Bytes(), nil
}
