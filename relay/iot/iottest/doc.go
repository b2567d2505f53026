// Package iottest has the test suite that every iot.ReadingStore passes. Tests of the limits of one
// store are in its package. Memory is a store for tests of the users of a store.
package iottest
