package iotapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// Surface is the REST operations of decoders and devices.
type Surface struct {
	iot    *iot.Service
	submit Submitter
}

// New returns the surface over the use cases; readings that are added go to
// submit.
func New(s *iot.Service, submit Submitter) *Surface { return &Surface{iot: s, submit: submit} }

// Mount adds the operations to the app, in the specification's order, except
// that a device called "readings" must not hide its own identifier.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	r := app.Group("/iot", auth.Require(account.IoT, httpd.IoTStyle()), problems)

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
}
