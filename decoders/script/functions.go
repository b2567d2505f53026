package script

import (
	"encoding/hex"
	"fmt"
	"math"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm/runtime"
	"github.com/penstock/penstock/decoders"
)

// joinName is the function that replaces the operator + unless both operands are numbers.
const joinName = "join_"

// maxString is the largest length of a concatenated string in bytes.
const maxString = 1 << 10

// functions returns the functions that an expression may call: some of expr's builtins and the
// following functions, which read bytes:
//
//	uint8 int8 uint16be uint16le int16be int16le uint24be uint24le int24be
//	int24le uint32be uint32le int32be int32le float32be float32le
//	                          (bytes, offset)          the number at an offset
//	bits(bytes, bit, count)   count bits (1-32) from a bit; bit 0 is the highest of the
//	                          first byte
//	bit(bytes, offset, n)     whether bit n of a byte is set; bit 0 is the lowest
//	bool(bytes, offset)       whether a byte is not 0
//	bcd(bytes, offset, n)     n bytes of two decimal digits each
//	hex(bytes, offset, n)     n bytes as hex digits
//	ascii(bytes, offset, n)   n bytes as text, up to the first zero byte
//
// Each returns an error with its offset if bytes is too short.
func functions() []expr.Option {
	options := []expr.Option{expr.DisableAllBuiltins()}
	for _, name := range builtins() {
		options = append(options, expr.EnableBuiltin(name))
	}
	for _, w := range []struct {
		name string
		word
	}{
		{"uint8", word{1, false, false}}, {"int8", word{1, false, true}},
		{"uint16be", word{2, false, false}}, {"uint16le", word{2, true, false}}, {"int16be", word{2, false, true}}, {"int16le", word{2, true, true}},
		{"uint24be", word{3, false, false}}, {"uint24le", word{3, true, false}}, {"int24be", word{3, false, true}}, {"int24le", word{3, true, true}},
		{"uint32be", word{4, false, false}}, {"uint32le", word{4, true, false}}, {"int32be", word{4, false, true}}, {"int32le", word{4, true, true}},
	} {
		options = append(options, expr.Function(w.name, w.read, new(func([]int, int) int)))
	}
	return append(options,
		expr.Function("float32be", word{size: 4}.readFloat, new(func([]int, int) float64)),
		expr.Function("float32le", word{size: 4, littleEndian: true}.readFloat, new(func([]int, int) float64)),
		expr.Function("bits", bits, new(func([]int, int, int) int)),
		expr.Function("bit", bit, new(func([]int, int, int) bool)),
		expr.Function("bool", boolean, new(func([]int, int) bool)),
		expr.Function("bcd", bcd, new(func([]int, int, int) int)),
		expr.Function("hex", hexText, new(func([]int, int, int) string)),
		expr.Function("ascii", ascii, new(func([]int, int, int) string)),
		expr.Function(joinName, add, new(func(any, any) any)),
	)
}

// builtins returns the builtins of expr whose results are not larger than their arguments. The
// rules check them too, because the parser accepts builtins with predicates even if they are
// disabled.
func builtins() []string {
	return []string{
		"all", "none", "any", "one", "filter", "map", "find", "findIndex", "findLast", "findLastIndex", "count", "sum",
		"len", "abs", "ceil", "floor", "round", "int", "float", "trim", "trimPrefix", "trimSuffix", "upper", "lower",
		"indexOf", "hasPrefix", "hasSuffix", "max", "min", "mean", "median", "first", "last", "get",
		"bitand", "bitor", "bitxor", "bitnand", "bitnot", "bitshl", "bitshr", "bitushr",
	}
}

// word reads a number of 1 to 4 bytes.
type word struct {
	size                 int
	littleEndian, signed bool
}

func (w word) read(args ...any) (any, error) {
	b, err := window(args[0], args[1], w.size)
	if err != nil {
		return nil, err
	}
	n := 0
	for i := range b {
		if w.littleEndian {
			n |= b[i] & 0xff << (8 * i)
		} else {
			n = n<<8 | b[i]&0xff
		}
	}
	if top := 8 * w.size; w.signed && n >= 1<<(top-1) {
		n -= 1 << top
	}
	return n, nil
}

func (w word) readFloat(args ...any) (any, error) {
	n, err := w.read(args...)
	if err != nil {
		return nil, err
	}
	return float64(math.Float32frombits(uint32(n.(int)))), nil
}

// window returns size elements of a list of bytes from an offset on.
func window(list, offset any, size int) ([]int, error) {
	b, isBytes := list.([]int)
	start, isInt := offset.(int)
	switch {
	case !isBytes || !isInt:
		return nil, bytesError(-1, "needs bytes and a whole number")
	case start < 0 || size < 0 || size > len(b) || start > len(b)-size:
		return nil, bytesError(start, fmt.Sprintf("needs %d bytes, there are %d", size, max(0, len(b)-max(start, 0))))
	}
	return b[start : start+size], nil
}

func bytesError(offset int, reason string) error {
	return &decoders.Error{Format: format, Offset: offset, Reason: reason}
}

func bits(args ...any) (any, error) {
	start, ok1 := args[1].(int)
	count, ok2 := args[2].(int)
	if !ok1 || !ok2 || start < 0 || count < 1 || count > 32 {
		return nil, bytesError(-1, "bits needs a bit from 0 on and a count from 1 to 32")
	}
	b, err := window(args[0], start/8, (start%8+count+7)/8)
	if err != nil {
		return nil, err
	}
	n := 0
	for i := range count {
		offset := start%8 + i
		n = n<<1 | b[offset/8]>>(7-offset%8)&1
	}
	return n, nil
}

func bit(args ...any) (any, error) {
	n, ok := args[2].(int)
	if !ok || n < 0 || n > 7 {
		return nil, bytesError(-1, "bit needs a number from 0 to 7")
	}
	b, err := window(args[0], args[1], 1)
	if err != nil {
		return nil, err
	}
	return b[0]>>n&1 == 1, nil
}

func boolean(args ...any) (any, error) {
	b, err := window(args[0], args[1], 1)
	if err != nil {
		return nil, err
	}
	return b[0] != 0, nil
}

func bcd(args ...any) (any, error) {
	size, ok := args[2].(int)
	if !ok || size < 1 || size > 7 {
		return nil, bytesError(-1, "bcd needs 1 to 7 bytes")
	}
	b, err := window(args[0], args[1], size)
	if err != nil {
		return nil, err
	}
	n := 0
	for i, x := range b {
		high, low := x>>4&0xf, x&0xf
		if high > 9 || low > 9 {
			return nil, bytesError(args[1].(int)+i, fmt.Sprintf("0x%02x is not two decimal digits", x&0xff))
		}
		n = n*100 + high*10 + low
	}
	return n, nil
}

func hexText(args ...any) (any, error) {
	b, err := bytesOf(args)
	return hex.EncodeToString(b), err
}

func ascii(args ...any) (any, error) {
	b, err := bytesOf(args)
	for i, c := range b {
		switch {
		case c == 0:
			return string(b[:i]), err
		case c > 0x7e || c < 0x20:
			b[i] = '?'
		}
	}
	return string(b), err
}

func bytesOf(args []any) ([]byte, error) {
	size, ok := args[2].(int)
	if !ok {
		return nil, bytesError(-1, "needs a whole number of bytes")
	}
	b, err := window(args[0], args[1], size)
	buf := make([]byte, len(b))
	for i := range b {
		buf[i] = byte(b[i])
	}
	return buf, err
}

// add implements + for values that may be strings.
func add(args ...any) (any, error) {
	a, isText := args[0].(string)
	b, ok := args[1].(string)
	if isText && ok && len(a)+len(b) > maxString {
		return nil, bytesError(-1, fmt.Sprintf("a string would be longer than %d bytes", maxString))
	}
	return runtime.Add(args[0], args[1]), nil
}
