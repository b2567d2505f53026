package inventory

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// kind is a kind of field values: a function that checks a value, and the same rule as JSON
// Schema. The tag check of a field has the name of its kind and arguments:
// `check:"digits 1 15"`. "each" before the name checks the elements of a list. Empty optional
// fields are not checked.
type kind struct {
	check  func(v reflect.Value, args []string) (problem string)
	schema func(args []string) map[string]any
}

const (
	minToken     = 16 // characters; a token that is shorter can be guessed
	maxNameBytes = 200
	maxID        = 64
	secretPrefix = "whsec_" // begins a secret of Standard Webhooks
)

func kinds() map[string]kind {
	text := func(check func(s string, args []string) string) func(reflect.Value, []string) string {
		return func(v reflect.Value, args []string) string { return check(v.String(), args) }
	}
	pattern := func(format string, values ...any) func([]string) map[string]any {
		return func([]string) map[string]any { return map[string]any{"pattern": fmt.Sprintf(format, values...)} }
	}
	return map[string]kind{
		"id": {text(checkID), pattern("^[A-Za-z0-9._-]{1,%d}$", maxID)},
		"name": {text(checkName), func([]string) map[string]any {
			return map[string]any{"minLength": 1, "maxLength": maxNameBytes}
		}},
		"digits": {checkDigits, func(args []string) map[string]any { return pattern(`^\+?[0-9]{%s,%s}$`, args[0], args[1])(nil) }},
		"one":    {text(checkOne), func(args []string) map[string]any { return map[string]any{"enum": choices(args)} }},
		"token": {text(checkToken), func([]string) map[string]any {
			return map[string]any{"minLength": minToken, "pattern": `^\S+$`}
		}},
		"secret": {text(checkSecret), pattern("^(%s[A-Za-z0-9+/]+=*|%s[0-9a-f]+)$", secretPrefix, masked)},
		"code":   {text(checkCode), pattern("^([0-9]{4,8}|%s)$", masked)},
		"ip":     {text(checkIP), pattern("^[0-9A-Fa-f:.]+(%%.+)?$")},
		"repeat": {text(checkRepeat), pattern("^(never|always|%s)$", durationPattern)},
		"least":  {checkLeast, func(args []string) map[string]any { return map[string]any{"minimum": atoi(args[0])} }},
	}
}

// choices returns the valid values of a field of kind "one": the words of its tag, or the
// names of actions.
func choices(args []string) []string {
	switch args[0] {
	case "geo-action":
		return slices.Sorted(maps.Keys(geoActions()))
	case "vmn-action":
		return slices.Sorted(maps.Keys(numberActions()))
	}
	return args
}

func atoi(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// tags checks the fields of a struct, and of nested structs, by their tags.
func (c *checker) tags(v reflect.Value, path string) {
	if c.kinds == nil {
		c.kinds, c.fields = kinds(), map[reflect.Type][]field{}
	}
	fields, known := c.fields[v.Type()]
	if !known {
		fields = fieldsOf(v.Type())
		c.fields[v.Type()] = fields
	}
	for i, f := range fields {
		value := v.Field(i)
		nested := value.Kind() == reflect.Struct || value.Kind() == reflect.Slice
		if (nested || len(f.check) > 0) && (f.required || !value.IsZero()) {
			c.value(value, path+f.name, f.check)
		}
	}
}

func (c *checker) value(v reflect.Value, path string, check []string) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		c.value(v.Elem(), path, check)
	case v.Kind() == reflect.Struct:
		c.tags(v, path+".")
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			c.value(v.Index(i), fmt.Sprintf("%s[%d]", path, i), check)
		}
	case len(check) > 0 && !c.mistakes.Has(path):
		if problem := c.kinds[check[0]].check(v, check[1:]); problem != "" {
			c.mistakes.Add(path, "%s", problem)
		}
	}
}

func checkID(s string, _ []string) string {
	if s == "" {
		return "expected an id"
	}
	invalid := func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-", r)
	}
	if len(s) > maxID || strings.ContainsFunc(s, invalid) {
		return fmt.Sprintf("expected 1 to %d letters, digits, dots, hyphens or underscores, got %q", maxID, clipValue(s))
	}
	return ""
}

func checkName(s string, _ []string) string {
	switch {
	case s == "":
		return "expected a name"
	case len(s) > maxNameBytes || strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Sprintf("expected one line of at most %d bytes, got %q", maxNameBytes, clipValue(s))
	}
	return ""
}

func checkOne(s string, args []string) string {
	words := choices(args)
	if slices.Contains(words, s) {
		return ""
	}
	choice := words[len(words)-1]
	if len(words) > 1 {
		choice = strings.Join(words[:len(words)-1], ", ") + " or " + choice
	}
	return fmt.Sprintf("expected %s, got %q", choice, clipValue(s))
}

// checkDigits checks a number and removes a plus sign before it.
func checkDigits(v reflect.Value, args []string) string {
	s := strings.TrimPrefix(v.String(), "+")
	v.SetString(s)
	if isDigits(s, int(atoi(args[0])), int(atoi(args[1]))) {
		return ""
	}
	return fmt.Sprintf("expected %s digits, got %q", strings.Join(slices.Compact(slices.Clone(args)), " to "), clipValue(s))
}

func isDigits(s string, minimum, maximum int) bool {
	return len(s) >= minimum && len(s) <= maximum && strings.Trim(s, "0123456789") == ""
}

func checkToken(s string, _ []string) string {
	if s == "" || strings.ContainsFunc(s, isBlank) {
		return "expected a token without blanks"
	}
	if n := len([]rune(s)); n < minToken {
		return fmt.Sprintf("expected at least %d characters, got %d", minToken, n)
	}
	return ""
}

// isBlank reports whether a character is invalid in headers and queries.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

func checkSecret(s string, _ []string) string {
	digits, ok := strings.CutPrefix(s, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(digits)
	if err != nil || !ok || len(key) < 24 || len(key) > 64 {
		return "expected whsec_ and the base64 of 24 to 64 bytes"
	}
	return ""
}

func checkCode(s string, _ []string) string {
	if !isDigits(s, 4, 8) {
		return "expected 4 to 8 digits"
	}
	return ""
}

func checkIP(s string, _ []string) string {
	if _, err := netip.ParseAddr(s); err != nil {
		return fmt.Sprintf("expected an IP address, got %q", clipValue(s))
	}
	return ""
}

func checkRepeat(s string, _ []string) string {
	var d Duration
	if err := d.UnmarshalText([]byte(s)); s != "never" && s != "always" && (err != nil || d <= 0) {
		return fmt.Sprintf("expected never, always or a duration such as 10m, got %q", clipValue(s))
	}
	return ""
}

// checkLeast checks a whole number. Further arguments explain the smallest value.
func checkLeast(v reflect.Value, args []string) string {
	if v.Int() < atoi(args[0]) {
		return fmt.Sprintf("expected %s or more, got %d", strings.Join(args, " "), v.Int())
	}
	return ""
}
