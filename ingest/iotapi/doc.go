// Package iotapi provides the REST operations of decoders, devices, readings, rules and alarms at
// /iot/…. The token is in Authorization.
//
// Envelopes follow the specification literally: if its success column says data, the
// record or list is in data; otherwise the body is the record.
package iotapi
