//go:build race

package iot_test

// underRace reports whether the race detector is on. It makes tests ten times slower.
const underRace = true
