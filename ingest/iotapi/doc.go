// Package iotapi is the REST surface of decoders, devices and readings, after
// document 3 of the specification, and of rules and alarms, at /iot/…. The token is in
// Authorization.
//
// Envelopes follow the specification literally: if its success column says data, the
// record or list is in data; otherwise the body is the record.
package iotapi
