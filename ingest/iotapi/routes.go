package iotapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
)

// Deps are the dependencies of the surface; all are required.
type Deps struct {
	IoT *iot.Service
	// Submit journals readings that are added.
	Submit Submitter
	Rules  Rules
	// Preview shows the requests of a trial.
	Preview outbox.Previewer
}

// Surface implements the REST operations of decoders, devices, rules and alarms.
type Surface struct {
	iot     *iot.Service
	submit  Submitter
	rules   Rules
	preview outbox.Previewer
}

// New returns the surface over the use cases.
func New(d Deps) *Surface {
	return &Surface{iot: d.IoT, submit: d.Submit, rules: d.Rules, preview: d.Preview}
}

// Mount adds the operations to the app, in the specification's order, except
// that a device called "readings" must not hide its own identifier.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	r := app.Group("/iot", auth.Require(account.IoT, httpd.IoTStyle()), answers().Handler)

	r.Post("/decoders/:decoder_id/sensors", s.addDecoderSensor)
	r.Post("/decoders", s.createDecoder)
	r.Delete("/decoders/:decoder_id/sensors/:key", s.deleteDecoderSensor)
	r.Get("/decoders/:decoder_id", s.getDecoder)
	r.Get("/decoders/:decoder_id/sensors", s.listDecoderSensors)
	r.Get("/decoders", s.listDecoders)
	r.Patch("/decoders/:decoder_id", s.patchDecoder)

	r.Get("/devices/identifier/:device_identifier", s.getDeviceByIdentifier)
	r.Post("/devices/:device_id/event-markers", s.addEventMarker)
	r.Get("/devices/:device_id/event-markers", s.listEventMarkers)
	r.Post("/devices/bluetooth", s.createBluetoothDevice)
	r.Post("/devices/other", s.createOtherDevice)
	r.Post("/devices/lorawan", s.createLoRaWANDevice)
	r.Get("/devices/:device_id/sensors", s.listSensors)
	r.Post("/devices/:device_id/readings", s.addReadings)
	r.Get("/devices/:device_id/readings", s.listReadings)
	r.Get("/devices/:device_id/readings/aggregate", s.aggregateReadings)
	r.Get("/devices/:device_id/readings/latest", s.latestReadings)
	r.Delete("/devices/:gateway_id", s.deleteDevice)
	r.Get("/devices", s.listDevices)
	r.Get("/devices/:device_id", s.getDevice)
	r.Patch("/devices/:device_id", s.patchDevice)
	r.Get("/devices/:device_id/frames", s.listFrames)
	r.Patch("/sensors/:sensor_id", s.patchSensor)

	r.Post("/rules/try", s.tryRule)
	r.Get("/rules", s.listRules)
	r.Post("/rules", s.createRule)
	r.Get("/rules/:rule_id", s.getRule)
	r.Patch("/rules/:rule_id", s.patchRule)
	r.Delete("/rules/:rule_id", s.deleteRule)
	r.Get("/alarms", s.listAlarms)
	r.Get("/alarms/:alarm_id", s.getAlarm)
	r.Patch("/alarms/:alarm_id", s.patchAlarm)
}
