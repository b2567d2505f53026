package inventory

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// kind is what a field may hold: a check of the document, and the same as JSON
// Schema. Fields name theirs in the tag check, with arguments: `check:"digits 1 15"`;
// "each" before it is for the entries of a list. Empty fields that need not be given
// are not checked.
type kind struct {
	check  func(c *checker, v reflect.Value, path string, args []string)
	schema func(args []string) map[string]any
}

// minToken is the least number of characters of a token: one that is shorter can be
// guessed.
const minToken = 16

// maxNameBytes bounds names.
const maxNameBytes = 200

func kinds() map[string]kind {
	return map[string]kind{
		"id": {
			func(c *checker, v reflect.Value, path string, _ []string) { c.id(v.String(), path) },
			func([]string) map[string]any { return pattern(fmt.Sprintf("^[A-Za-z0-9._-]{1,%d}$", maxID)) },
		},
		"name": {
			func(c *checker, v reflect.Value, path string, _ []string) { c.name(v.String(), path) },
			func([]string) map[string]any { return map[string]any{"minLength": 1, "maxLength": maxNameBytes} },
		},
		"digits": {checkDigits, func(args []string) map[string]any {
			return pattern(fmt.Sprintf(`^\+?[0-9]{%s,%s}$`, args[0], args[1]))
		}},
		"one": {
			func(c *checker, v reflect.Value, path string, args []string) {
				c.oneOf(v.String(), choices(args), path)
			},
			func(args []string) map[string]any { return map[string]any{"enum": choices(args)} },
		},
		"token": {checkToken, func([]string) map[string]any { return map[string]any{"minLength": minToken, "pattern": `^\S+$`} }},
		"secret": {checkSecret, func([]string) map[string]any {
			return pattern("^(" + secretPrefix + "[A-Za-z0-9+/]+=*|" + masked + "[0-9a-f]+)$")
		}},
		"code": {checkCode, func([]string) map[string]any { return pattern("^([0-9]{4,8}|" + masked + ")$") }},
		"ip": {
			func(c *checker, v reflect.Value, path string, _ []string) {
				if _, err := netip.ParseAddr(v.String()); err != nil {
					c.mistakes.Add(path, "expected an IP address, got %q", clipValue(v.String()))
				}
			},
			func([]string) map[string]any { return pattern("^[0-9A-Fa-f:.]+(%.+)?$") },
		},
		"repeat": {checkRepeat, func([]string) map[string]any { return pattern("^(never|always|" + durationPattern + ")$") }},
		"least":  {checkLeast, func(args []string) map[string]any { return map[string]any{"minimum": atoi(args[0])} }},
	}
}

func pattern(p string) map[string]any { return map[string]any{"pattern": p} }

// choices are the words of "one": given in the tag, or those of an action.
func choices(args []string) []string {
	switch args[0] {
	case "geo-action":
		return slices.Sorted(maps.Keys(geoActions()))
	case "vmn-action":
		return slices.Sorted(maps.Keys(numberActions()))
	}
	return args
}

func atoi(s string) (n int64) {
	_, _ = fmt.Sscan(s, &n)
	return n
}

// plan is how a field of a struct is checked.
type plan struct {
	name     string
	check    []string // nil: by its fields or entries only
	optional bool
}

// plansOf returns how the fields of a struct are checked; the tags of a type are read
// once, for there may be very many SIMs.
func (c *checker) plansOf(t reflect.Type) []plan {
	if known, ok := c.plans[t]; ok {
		return known
	}
	out := make([]plan, t.NumField())
	for i := range out {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		out[i] = plan{name, strings.Fields(f.Tag.Get("check")), options != ""}
	}
	c.plans[t] = out
	return out
}

// fields checks the fields of a struct, and of the structs within it, by their tags.
func (c *checker) fields(v reflect.Value, at string) {
	for i, p := range c.plansOf(v.Type()) {
		f := v.Field(i)
		nested := f.Kind() == reflect.Struct || f.Kind() == reflect.Slice
		if (nested || len(p.check) > 0) && !(p.optional && f.IsZero()) {
			c.field(f, at+p.name, p.check)
		}
	}
}

func (c *checker) field(v reflect.Value, path string, check []string) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		c.field(v.Elem(), path, check)
	case v.Kind() == reflect.Struct:
		c.fields(v, path+".")
	case v.Kind() == reflect.Slice:
		if len(check) > 0 && check[0] == "each" {
			check = check[1:]
		}
		for i := range v.Len() {
			c.field(v.Index(i), fmt.Sprintf("%s[%d]", path, i), check)
		}
	case len(check) > 0 && !c.mistakes.Has(path):
		c.kinds[check[0]].check(c, v, path, check[1:])
	}
}

// checkDigits checks a number and takes the plus off its front.
func checkDigits(c *checker, v reflect.Value, path string, args []string) {
	s := strings.TrimPrefix(v.String(), "+")
	v.SetString(s)
	least, most := int(atoi(args[0])), int(atoi(args[1]))
	if allDigits(s) && len(s) >= least && len(s) <= most {
		return
	}
	want := fmt.Sprintf("%d to %d digits", least, most)
	if least == most {
		want = fmt.Sprintf("%d digits", least)
	}
	c.mistakes.Add(path, "expected %s, got %q", want, clipValue(s))
}

func checkToken(c *checker, v reflect.Value, path string, _ []string) {
	s := v.String()
	if s == "" || strings.ContainsFunc(s, blank) {
		c.mistakes.Add(path, "expected a token without blanks")
	} else if n := len([]rune(s)); n < minToken {
		c.mistakes.Add(path, "expected at least %d characters, got %d", minToken, n)
	}
}

// blank reports what no header or query can carry unharmed.
func blank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// secretPrefix begins a secret of Standard Webhooks.
const secretPrefix = "whsec_"

func checkSecret(c *checker, v reflect.Value, path string, _ []string) {
	digits, ok := strings.CutPrefix(v.String(), secretPrefix)
	key, err := base64.StdEncoding.DecodeString(digits)
	c.mistakes.AddIf(err != nil || !ok || len(key) < 24 || len(key) > 64, path, "expected whsec_ and the base64 of 24 to 64 bytes")
}

func checkCode(c *checker, v reflect.Value, path string, _ []string) {
	if s := v.String(); !allDigits(s) || len(s) < 4 || len(s) > 8 {
		c.mistakes.Add(path, "expected 4 to 8 digits")
	}
}

func checkRepeat(c *checker, v reflect.Value, path string, _ []string) {
	s := v.String()
	if s == "never" || s == "always" {
		return
	}
	var d Duration
	if err := d.UnmarshalText([]byte(s)); err != nil || d <= 0 {
		c.mistakes.Add(path, "expected never, always or a duration such as 10m, got %q", clipValue(s))
	}
}

// checkLeast checks a whole number; further arguments explain the least.
func checkLeast(c *checker, v reflect.Value, path string, args []string) {
	if v.Int() < atoi(args[0]) {
		c.mistakes.Add(path, "expected %s or more, got %d", strings.Join(args, " "), v.Int())
	}
}
