// Package grafana makes the dashboards that ship beside this file: of a fleet,
// of a device, of the traffic, of a decoder's sensors, and of the gateway itself.
//
// They follow Grafana's dashboard JSON (schemaVersion 39) and ask InfluxQL of
// what the gateway writes: a measurement for each sensor type with the field
// value or text and the tags account, device_id, identifier, sensor_id and key,
// and the measurement uplink with the radio side of frames. That of the gateway asks
// PromQL of its metrics. The package holds no
// client: it refuses nothing and reads nothing, it writes JSON.
package grafana
