//go:build !race

package iot_test

// underRace reports that the race detector is on, which makes tests ten times slower.
const underRace = false
