//go:build race

package iot_test

// underRace is set where everything takes ten times as long.
const underRace = true
