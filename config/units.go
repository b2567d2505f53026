package config

import (
	"errors"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // time zones must not depend on the files of the machine

	"github.com/penstock/penstock/config/strict"
)

// Bytes is a size in bytes.
type Bytes int64

// units lists the units of Bytes in the order in which String tries them: powers of 1024, then
// powers of 1000, each from the largest.
func units() []unit {
	return []unit{
		{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1}, {"", 1},
	}
}

type unit struct {
	name   string
	factor int64
}

// UnmarshalText parses a whole number with an optional unit: B, kB, MB, GB, TB
// (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024).
func (b *Bytes) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), " KkMGTiB")
	name := strings.TrimSpace(string(text[len(digits):]))
	n, err := strconv.ParseInt(digits, 10, 64)
	i := slices.IndexFunc(units(), func(u unit) bool { return u.name == name })
	if err != nil || i < 0 || n < 0 || n > (1<<62)/units()[i].factor {
		return errors.New("expected a size such as 2GiB, 500MB or a number of bytes")
	}
	*b = Bytes(n * units()[i].factor)
	return nil
}

// String returns the size in the first of the units that divides the size, or in bytes.
func (b Bytes) String() string {
	for _, u := range units() {
		if b != 0 && u.factor > 1 && int64(b)%u.factor == 0 {
			return strconv.FormatInt(int64(b)/u.factor, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// options returns the limit of a file and the parsers of the types of settings.
func options() strict.Options {
	return strict.Options{MaxBytes: 1 << 20, Types: map[reflect.Type]func(string) (any, error){
		reflect.TypeFor[*time.Location](): func(s string) (any, error) { return parseZone(s) },
		reflect.TypeFor[netip.Prefix]():   func(s string) (any, error) { return parsePrefix(s) },
		reflect.TypeFor[slog.Level]():     func(s string) (any, error) { return parseLevel(s) },
	}}
}

func parseLevel(name string) (l slog.Level, err error) {
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, name) {
		return l, errors.New("expected debug, info, warn or error")
	}
	return l, l.UnmarshalText([]byte(name))
}

func parseZone(name string) (*time.Location, error) {
	loc, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, errors.New("expected a time zone such as Europe/London")
	}
	return loc, nil
}

// parsePrefix parses an address range, or a single address.
func parsePrefix(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, errors.New("expected an address range such as 10.0.0.0/8")
	}
	return p.Masked(), nil
}
