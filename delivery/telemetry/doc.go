// Package telemetry sends spans to an OpenTelemetry collector: OTLP over HTTP, in
// protobuf (https://opentelemetry.io/docs/specs/otlp/). It never holds traffic up:
// spans beyond what the collector takes are dropped and counted.
package telemetry
