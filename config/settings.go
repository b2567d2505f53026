package config

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
)

const prefixOfVariables = "PENSTOCK_"

// setting is one field of a Config.
type setting struct {
	key      string // redis.url
	variable string // PENSTOCK_REDIS_URL; empty: file only
	secret   string // "yes": all of it; "url": what its user part and query hold
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
		s := setting{key: key, secret: f.Tag.Get("secret"), value: v.Field(i)}
		switch {
		case f.Tag.Get("env") == "-":
			list = append(list, s)
		case f.Type.Kind() == reflect.Struct:
			list = collect(list, key+".", v.Field(i))
		default:
			s.variable = prefixOfVariables + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
			list = append(list, s)
		}
	}
	return list
}

func find(list []setting, variable string) (setting, bool) {
	i := slices.IndexFunc(list, func(s setting) bool { return s.variable == variable })
	if i < 0 {
		return setting{}, false
	}
	return list[i], true
}

// Redacted returns the settings with their secrets hidden, for showing.
func (c Config) Redacted() Config {
	for _, s := range settings(&c) {
		switch {
		case s.secret == "" || s.value.String() == "":
		case s.secret == "url":
			s.value.SetString(redactURL(s.value.String()))
		default:
			s.value.SetString("***")
		}
	}
	if c.Lookup.Token != "" {
		c.Lookup.Token = "***"
	}
	if c.Lookup.URL != "" {
		c.Lookup.URL = redactURL(c.Lookup.URL)
	}
	if c.Operator.Token != "" {
		c.Operator.Token = "***"
	}
	if c.Operator.URL != "" {
		c.Operator.URL = redactURL(c.Operator.URL)
	}
	c.Carriers = slices.Clone(c.Carriers)
	for i := range c.Carriers {
		for _, secret := range []*string{&c.Carriers[i].Password, &c.Carriers[i].Token} {
			if *secret != "" {
				*secret = "***"
			}
		}
		c.Carriers[i].URL = redactURL(c.Carriers[i].URL)
	}
	return c
}

// LogValue shows the settings by their keys, secrets hidden, so that a Config
// that is logged by mistake gives nothing away.
func (c Config) LogValue() slog.Value {
	shown := c.Redacted()
	attrs := make([]slog.Attr, 0, 32)
	for _, s := range settings(&shown) {
		attrs = append(attrs, slog.String(s.key, fmt.Sprint(s.value.Interface())))
	}
	return slog.GroupValue(attrs...)
}

// redactURL hides the user part and the query. It does not parse, because a URL
// of several Redis hosts is more than net/url takes.
func redactURL(raw string) string {
	shown, _, queried := strings.Cut(raw, "?")
	scheme, rest, _ := strings.Cut(shown, "://")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = "***@" + rest[at+1:]
	}
	if queried {
		rest += "?***"
	}
	return scheme + "://" + rest
}
