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
	_ "time/tzdata" // time zones must not depend on what the machine has installed

	"github.com/penstock/penstock/config/strict"
)

// Bytes is a size.
type Bytes int64

// UnmarshalText reads a whole number with an optional unit: B, kB, MB, GB, TB
// (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024).
func (b *Bytes) UnmarshalText(text []byte) error {
	malformed := errors.New("expected a size such as 2GiB, 500MB or a number of bytes")
	s := string(text)
	digits := strings.TrimRight(s, " KkMGTiB")
	factor, known := unit(strings.TrimSpace(s[len(digits):]))
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n < 0 || n > (1<<62)/factor {
		return malformed
	}
	*b = Bytes(n * factor)
	return nil
}

// String returns the size in the largest unit that divides it.
func (b Bytes) String() string {
	for _, name := range []string{"TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB"} {
		if factor, _ := unit(name); b != 0 && int64(b)%factor == 0 {
			return strconv.FormatInt(int64(b)/factor, 10) + name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

func unit(name string) (factor int64, ok bool) {
	switch name {
	case "", "B":
		return 1, true
	case "kB", "KB":
		return 1e3, true
	case "MB":
		return 1e6, true
	case "GB":
		return 1e9, true
	case "TB":
		return 1e12, true
	case "KiB":
		return 1 << 10, true
	case "MiB":
		return 1 << 20, true
	case "GiB":
		return 1 << 30, true
	case "TiB":
		return 1 << 40, true
	}
	return 1, false
}

// types teaches the decoder the types that settings have.
func types() strict.Options {
	return strict.Options{MaxBytes: 1 << 20, Types: map[reflect.Type]func(string) (any, error){
		reflect.TypeFor[*time.Location](): func(s string) (any, error) { return zone(s) },
		reflect.TypeFor[netip.Prefix]():   func(s string) (any, error) { return prefix(s) },
		reflect.TypeFor[slog.Level]():     func(s string) (any, error) { return level(s) },
	}}
}

func level(name string) (l slog.Level, err error) {
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, name) {
		return l, errors.New("expected debug, info, warn or error")
	}
	return l, l.UnmarshalText([]byte(name))
}

func zone(name string) (*time.Location, error) {
	loc, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, errors.New("expected a time zone such as Europe/London")
	}
	return loc, nil
}

// mustZone loads a zone that is compiled in.
func mustZone(name string) *time.Location {
	loc, err := zone(name)
	if err != nil {
		return time.UTC
	}
	return loc
}

// prefix reads an address range; a single address is a range of one.
func prefix(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, errors.New("expected an address range such as 10.0.0.0/8")
	}
	return p.Masked(), nil
}
