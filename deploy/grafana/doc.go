// Package grafana makes the dashboard of a decoder's sensors. Those of a fleet, a device,
// the traffic and the gateway itself ship beside this file as Grafana exports them.
//
// All follow Grafana's dashboard JSON (schemaVersion 39) and ask InfluxQL of
// what the gateway writes: a measurement for each sensor type with the field
// value or text and the tags account, device_id, identifier, sensor_id and key,
// and the measurement uplink with the radio side of frames. That of the gateway asks
// PromQL of its metrics. The package holds no
// client: it refuses nothing and reads nothing, it writes JSON.
package grafana
