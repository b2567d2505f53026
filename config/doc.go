// Package config has the settings of the program: their keys, environment variables, defaults
// and rules. deploy/penstock.example.yaml lists them.
//
// An environment variable overrides the value in the file, which overrides the default. The
// variable of redis.url is PENSTOCK_REDIS_URL. An empty variable counts as not set.
// Carriers, operator and lookup have no variables.
//
// Load refuses unknown keys and returns all mistakes together, each with its key and its
// variable. It ignores unknown variables, because a Kubernetes service named penstock sets
// PENSTOCK_PORT. UnknownVariables lists them.
package config
