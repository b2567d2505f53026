// Package iottest holds the suite that every iot.ReadingStore passes: what one store does
// with readings, the other does too. It states the port's contract as tests and refuses
// nothing else; limits of one store are tested next to it. Memory is a store for the tests of
// what stands in front of one.
package iottest
