// Package iottest provides the tests that every iot.ReadingStore must pass. Tests of the limits of
// one store are in the package of that store. Memory is a store for tests of code that uses a store.
package iottest
