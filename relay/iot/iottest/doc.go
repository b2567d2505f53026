// Package iottest has the test suite that each iot.ReadingStore passes. Tests of the limits of one
// store are in its package. Memory is a store for tests of code that uses a store.
package iottest
