package config

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
)

// The prefixes of the variables of settings, and of the variables for tests.
const (
	variablePrefix = "PENSTOCK_"
	testPrefix     = "PENSTOCK_TEST_"
)

// setting is one field of a Config.
type setting struct {
	key      string // redis.url
	variable string // PENSTOCK_REDIS_URL; empty if there is none
	value    reflect.Value
}

// settings lists the fields of a Config in the order of its declaration.
func settings(c *Config) []setting {
	return collect(nil, "", reflect.ValueOf(c).Elem())
}

func collect(list []setting, parent string, v reflect.Value) []setting {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key := parent + f.Tag.Get("json")
		s := setting{key: key, value: v.Field(i)}
		switch {
		case f.Tag.Get("env") == "-":
			list = append(list, s)
		case f.Type.Kind() == reflect.Struct:
			list = collect(list, key+".", v.Field(i))
		default:
			s.variable = variablePrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
			list = append(list, s)
		}
	}
	return list
}

// Redacted returns the settings without secrets, for display. The tag secret:"yes" marks a
// secret field, and secret:"url" a URL with secrets in its user part or query.
func (c Config) Redacted() Config {
	c.Carriers = slices.Clone(c.Carriers)
	redact(reflect.ValueOf(&c).Elem())
	for i := range c.Carriers {
		carrier := &c.Carriers[i]
		carrier.Binds = slices.Clone(carrier.Binds)
		redact(reflect.ValueOf(carrier).Elem())
		for k := range carrier.Binds {
			redact(reflect.ValueOf(&carrier.Binds[k]).Elem())
		}
	}
	return c
}

func redact(v reflect.Value) {
	for i := range v.NumField() {
		f, secret := v.Field(i), v.Type().Field(i).Tag.Get("secret")
		switch {
		case f.Kind() == reflect.Struct:
			redact(f)
		case secret == "" || f.String() == "":
		case secret == "url":
			f.SetString(redactURL(f.String()))
		default:
			f.SetString("***")
		}
	}
}

// LogValue returns the redacted settings by their keys, so that a log never contains secrets.
func (c Config) LogValue() slog.Value {
	config := c.Redacted()
	attrs := make([]slog.Attr, 0, 32)
	for _, s := range settings(&config) {
		attrs = append(attrs, slog.String(s.key, fmt.Sprint(s.value.Interface())))
	}
	return slog.GroupValue(attrs...)
}

// redactURL hides the user part and the query. It does not use net/url, which refuses URLs of
// several Redis hosts.
func redactURL(raw string) string {
	text, _, hasQuery := strings.Cut(raw, "?")
	scheme, remaining, _ := strings.Cut(text, "://")
	if offset := strings.LastIndexByte(remaining, '@'); offset >= 0 {
		remaining = "***@" + remaining[offset+1:]
	}
	if hasQuery {
		remaining += "?***"
	}
	return scheme + "://" + remaining
}
