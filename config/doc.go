// Package config holds the settings of the program: their keys, environment
// variables, defaults and rules, as deploy/penstock.example.yaml lists them.
//
// A setting comes from its environment variable, else from the file, else from
// its default. The variable is the key in capitals behind PENSTOCK_, with dots
// as underscores: redis.url is PENSTOCK_REDIS_URL. An empty variable counts as
// not set. Carriers, operator and lookup are read from the file only.
//
// Load refuses unknown keys and reports all mistakes at once, each named by its
// key and its variable. Unknown variables are ignored, because others set some
// too (a Kubernetes service named penstock sets PENSTOCK_PORT): UnknownVariables
// lists them.
package config
