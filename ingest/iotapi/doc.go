// Package iotapi is the REST surface of decoders, devices and readings, after
// document 3 of the specification: /iot/…, the token in Authorization.
//
// Envelopes are literal: where the specification's success column says data,
// the record or list stands in data; where it does not, the body is the record.
package iotapi
