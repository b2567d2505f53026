package javascript

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

// fixture has a codec, a frame and the expected result.
type fixture struct {
	name, source, want string
	frame              decoders.Frame
}

func fixtures(t testing.TB) []fixture {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) < 15 {
		t.Fatalf("%d fixtures, error %v", len(paths), err)
	}
	var list []fixture
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		relaytest.NoError(t, err)
		f := fixture{name: strings.TrimSuffix(filepath.Base(path), ".txtar") + ": " + strings.TrimSpace(string(a.Comment))}
		for _, part := range a.Files {
			switch part.Name {
			case "codec.js":
				f.source = string(part.Data)
			case "frame":
				f.frame = readFrame(t, string(part.Data))
			case "want":
				f.want = string(part.Data)
			}
		}
		list = append(list, f)
	}
	return list
}

func readFrame(t testing.TB, text string) decoders.Frame {
	t.Helper()
	f := decoders.Frame{Identifier: "a84041d2c5182f01", FCnt: 7, HasFPort: true, NetworkTime: time.Date(2026, 2, 14, 6, 30, 0, 0, time.UTC)}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		var err error
		switch key {
		case "port":
			f.FPort, err = strconv.Atoi(value)
		case "hex":
			f.Payload, err = hex.DecodeString(strings.ReplaceAll(value, " ", ""))
		case "params":
			err = json.Unmarshal([]byte(value), &f.Params)
		}
		relaytest.NoError(t, err)
	}
	return f
}

// formatResult formats a result like the fixtures do.
func formatResult(res decoders.Result, err error) string {
	var b strings.Builder
	for _, r := range res.Readings {
		value := fmt.Sprintf("%.16g", r.Value)
		if r.IsText {
			value = strconv.Quote(r.Text)
		}
		fmt.Fprintf(&b, "%s = %s", r.Key, value)
		if !r.Time.IsZero() {
			fmt.Fprintf(&b, " at %s", r.Time.Format(time.RFC3339))
		}
		b.WriteByte('\n')
	}
	for _, e := range res.Errors {
		fmt.Fprintf(&b, "errors: %s\n", e)
	}
	for _, w := range res.Warnings {
		fmt.Fprintf(&b, "warnings: %s\n", w)
	}
	if err != nil {
		fmt.Fprintf(&b, "failed: %v\n", err)
	}
	return b.String()
}

func TestPublishedCodecs(t *testing.T) {
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			c, err := Compile(f.source)
			relaytest.NoError(t, err)
			for range 2 {
				res, err := c.Decode(&f.frame)
				if got := formatResult(res, err); got != f.want {
					t.Fatalf("got\n%s\nwant\n%s", got, f.want)
				}
			}
		})
	}
}

// Public catalogues wrap their functions in an object.
func TestWrappersOfPublicCataloguesRun(t *testing.T) {
	const function = `function decodeUplink(input) { return {data: {a: input.bytes[0]}}; }`
	for name, source := range map[string]string{
		"exports.driver":                    function + ` exports.driver = {decodeUplink};`,
		"module.exports.driver":             function + ` module.exports.driver = {decodeUplink: decodeUplink};`,
		"module.exports":                    `module.exports = {decodeUplink: (input) => ({data: {a: input.bytes[0]}})};`,
		"var driver":                        `var driver = {decodeUplink: ` + function + `};`,
		"const driver":                      `const driver = {decodeUplink(input) { return {data: {a: input.bytes[0]}}; }};`,
		"let with another name":             `let myDecoder = {decodeUplink: ` + function + `};`,
		"a function that returns a driver":  `var driver = (function () { ` + function + ` return {decodeUplink}; })();`,
		"export const driver":               `export const driver = {decodeUplink: ` + function + `};`,
		"export default with a driver":      `export default {driver: {decodeUplink: ` + function + `}};`,
		"a method that uses this":           `var driver = {first(b) { return b[0]; }, decodeUplink(input) { return {data: {a: this.first(input.bytes)}}; }};`,
		"an instance of a class":            `class Driver { decodeUplink(input) { return {data: {a: input.bytes[0]}}; } } exports.driver = new Driver();`,
		"a module compiled from TypeScript": `"use strict"; Object.defineProperty(exports, "__esModule", { value: true }); exports.driver = void 0; exports.driver = {decodeUplink: ` + function + `};`,
		"an object with the older function": `var codec = {Decoder: function (bytes, port) { return {a: bytes[0]}; }};`,
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Compile(source)
			relaytest.NoError(t, err)
			res, err := c.Decode(&decoders.Frame{Payload: []byte{7}, FPort: 1, HasFPort: true})
			relaytest.NoError(t, err)
			if len(res.Readings) != 1 || res.Readings[0].Key != "a" || res.Readings[0].Value != 7 {
				t.Errorf("got %v, want a = 7", res.Readings)
			}
		})
	}
}
