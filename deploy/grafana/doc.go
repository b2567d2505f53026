// Package grafana creates the dashboard of a decoder's sensors as Grafana's dashboard JSON. The
// dashboards that do not depend on a decoder are files in the folder dashboards.
//
// The dashboards of decoders, devices, the fleet and traffic query InfluxDB with InfluxQL. The
// gateway writes a measurement for each sensor type, with the field value or text and the tags
// account, device_id, identifier, sensor_id and key, and the measurement uplink with the radio
// data of frames. The other dashboards query the gateway's metrics with PromQL.
package grafana
