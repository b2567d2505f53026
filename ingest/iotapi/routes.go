package iotapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/rule"
)

// Deps are the dependencies of the surface; all are required.
type Deps struct {
	IoT    *iot.Service
	Submit Submitter // for readings that are added
	Rules  *rule.Service
	// Preview returns the requests of a trial.
	Preview outbox.Previewer
}

// Surface implements the REST operations of decoders, devices, rules and alarms.
type Surface struct{ Deps }

// New returns the surface.
func New(d Deps) *Surface { return &Surface{d} }

// Mount adds the operations to the app. They are in the order of the specification, except that
// /devices/identifier/… comes first: /devices/identifier/readings also matches the path of readings.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	r := app.Group("/iot", auth.Require(account.IoT, httpd.APIStyle(httpd.BearerOrBare)), httpd.ErrorsOf(httpd.Errors{
		relay.KindNotFound: httpd.Empty(fiber.StatusNotFound),
		relay.KindConflict: httpd.Fixed(fiber.StatusUnprocessableEntity, "Device has already been claimed."),
	}).Handler)

	r.Post("/decoders/:decoder_id/sensors", data(fiber.StatusOK, s.addDecoderSensor, mappingsOf))
	r.Post("/decoders", data(fiber.StatusCreated, s.createDecoder, decoderOf))
	r.Delete("/decoders/:decoder_id/sensors/:key", params.WithoutQuery(data(fiber.StatusOK, s.deleteDecoderSensor, mappingsOf)))
	r.Get("/decoders/templates", pages(listTemplates, identity))
	r.Get("/decoders/:decoder_id", s.getDecoder)
	r.Delete("/decoders/:decoder_id", params.WithoutQuery(s.deleteDecoder))
	r.Get("/decoders/:decoder_id/sensors", httpd.Search, pages(s.listDecoderSensors, identity))
	r.Get("/decoders", httpd.Search, pages(ofAccount(s.IoT.Decoders), decoderOf))
	r.Patch("/decoders/:decoder_id", data(fiber.StatusOK, s.patchDecoder, decoderOf))

	r.Get("/devices/identifier/:device_identifier", s.getDeviceByIdentifier)
	r.Post("/devices/:device_id/event-markers", s.addEventMarker)
	r.Get("/devices/:device_id/event-markers", httpd.Search, pages(ofRecord("device_id", s.IoT.Markers), markerOf))
	r.Post("/devices/bluetooth", data(fiber.StatusCreated, s.createDevice(iot.Bluetooth), createdOf))
	r.Post("/devices/other", data(fiber.StatusCreated, s.createDevice(iot.Other), createdOf))
	r.Post("/devices/lorawan", data(fiber.StatusCreated, s.createDevice(iot.LoRaWAN), createdOf))
	r.Get("/devices/:device_id/sensors", httpd.Search, s.listSensors)
	r.Post("/devices/:device_id/readings", s.addReadings)
	r.Get("/devices/:device_id/readings", httpd.Search, s.listReadings)
	r.Get("/devices/:device_id/readings/aggregate", httpd.Search, s.aggregateReadings)
	r.Get("/devices/:device_id/readings/latest", s.latestReadings)
	r.Delete("/devices/:gateway_id", params.WithoutQuery(func(c *fiber.Ctx) error { // the specification's name for the id of the device
		return invalidDevice(c, deleted("gateway_id", s.IoT.DeleteDevice)(c))
	}))
	r.Get("/devices", httpd.Search, pages(ofAccount(s.IoT.Devices), deviceOf))
	r.Get("/devices/:device_id", s.getDevice)
	r.Patch("/devices/:device_id", data(fiber.StatusOK, s.patchDevice, deviceOf))
	r.Get("/devices/:device_id/frames", httpd.Search, pages(ofRecord("device_id", s.IoT.Frames), frameOf))
	r.Patch("/sensors/:sensor_id", data(fiber.StatusOK, s.patchSensor, sensorOf))

	r.Get("/locations", httpd.Search, pages(ofAccount(s.IoT.Locations), locationOf))
	r.Post("/locations", data(fiber.StatusCreated, s.createLocation, locationOf))

	r.Post("/rules/try", httpd.Search, params.WithoutQuery(data(fiber.StatusOK, s.tryRule, identity)))
	r.Get("/rules", httpd.Search, s.listRules)
	r.Post("/rules", params.WithoutQuery(s.createRule))
	r.Get("/rules/:rule_id", data(fiber.StatusOK, ofRecord("rule_id", s.Rules.Rule), ruleOf))
	r.Patch("/rules/:rule_id", params.WithoutQuery(s.patchRule))
	r.Delete("/rules/:rule_id", params.WithoutQuery(deleted("rule_id", s.Rules.Delete)))
	r.Get("/alarms", httpd.Search, s.listAlarms)
	r.Post("/alarms/mute", params.WithoutQuery(data(fiber.StatusCreated, s.muteAlarms, muteOf)))
	r.Delete("/alarms/mute", s.unmuteAlarms)
	r.Get("/alarms/:alarm_id", data(fiber.StatusOK, ofRecord("alarm_id", s.Rules.Alarm), alarmOf))
	r.Patch("/alarms/:alarm_id", params.WithoutQuery(data(fiber.StatusOK, s.patchAlarm, alarmOf)))
}
