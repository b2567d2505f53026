// Package catalogtest compiles codecs for tests.
package catalogtest

import (
	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/catalog"
	"github.com/penstock/penstock/decoders/script/javascript"
)

// Compile compiles a codec with a catalog that runs JavaScript in the test process.
func Compile(codec, source string, useRawPayload bool) (decoders.Decoder, error) {
	c := catalog.Catalog{JavaScript: func(source string) (decoders.Decoder, error) {
		compiled, err := javascript.Compile(source)
		if err == nil {
			err = compiled.Check(&javascript.Interrupter{})
		}
		return compiled, err
	}}
	return c.Compile(codec, source, useRawPayload)
}
