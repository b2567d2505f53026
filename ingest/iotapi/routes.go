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

	r.Post("/decoders/:decoder_id/sensors", recordHandler(fiber.StatusOK, s.addDecoderSensor, mappingsOf))
	r.Post("/decoders", recordHandler(fiber.StatusCreated, s.createDecoder, decoderOf))
	r.Delete("/decoders/:decoder_id/sensors/:key", params.WithoutQuery(recordHandler(fiber.StatusOK, s.deleteDecoderSensor, mappingsOf)))
	r.Get("/decoders/templates", listHandler(listTemplates, identity))
	r.Get("/decoders/:decoder_id", s.getDecoder)
	r.Delete("/decoders/:decoder_id", params.WithoutQuery(s.deleteDecoder))
	r.Get("/decoders/:decoder_id/sensors", httpd.Search, listHandler(s.listDecoderSensors, identity))
	r.Get("/decoders", httpd.Search, listHandler(withAccount(s.IoT.Decoders), decoderOf))
	r.Patch("/decoders/:decoder_id", recordHandler(fiber.StatusOK, s.patchDecoder, decoderOf))

	r.Get("/devices/identifier/:device_identifier", s.getDeviceByIdentifier)
	r.Post("/devices/:device_id/event-markers", s.addEventMarker)
	r.Get("/devices/:device_id/event-markers", httpd.Search, listHandler(withRecordID("device_id", s.IoT.Markers), markerOf))
	r.Post("/devices/bluetooth", recordHandler(fiber.StatusCreated, s.createDevice(iot.Bluetooth), createdOf))
	r.Post("/devices/other", recordHandler(fiber.StatusCreated, s.createDevice(iot.Other), createdOf))
	r.Post("/devices/lorawan", recordHandler(fiber.StatusCreated, s.createDevice(iot.LoRaWAN), createdOf))
	r.Get("/devices/:device_id/sensors", httpd.Search, s.listSensors)
	r.Post("/devices/:device_id/readings", s.addReadings)
	r.Get("/devices/:device_id/readings", httpd.Search, s.listReadings)
	r.Get("/devices/:device_id/readings/aggregate", httpd.Search, s.aggregateReadings)
	r.Get("/devices/:device_id/readings/latest", s.latestReadings)
	r.Delete("/devices/:gateway_id", params.WithoutQuery(func(c *fiber.Ctx) error { // the specification's name for the id of the device
		return invalidDevice(c, deleteHandler("gateway_id", s.IoT.DeleteDevice)(c))
	}))
	r.Get("/devices", httpd.Search, listHandler(withAccount(s.IoT.Devices), deviceOf))
	r.Get("/devices/:device_id", s.getDevice)
	r.Patch("/devices/:device_id", recordHandler(fiber.StatusOK, s.patchDevice, deviceOf))
	r.Get("/devices/:device_id/frames", httpd.Search, listHandler(withRecordID("device_id", s.IoT.Frames), frameOf))
	r.Patch("/sensors/:sensor_id", recordHandler(fiber.StatusOK, s.patchSensor, sensorOf))

	r.Get("/locations", httpd.Search, listHandler(withAccount(s.IoT.Locations), locationOf))
	r.Post("/locations", recordHandler(fiber.StatusCreated, s.createLocation, locationOf))

	r.Post("/rules/try", httpd.Search, params.WithoutQuery(recordHandler(fiber.StatusOK, s.tryRule, identity)))
	r.Get("/rules", httpd.Search, s.listRules)
	r.Post("/rules", params.WithoutQuery(s.createRule))
	r.Get("/rules/:rule_id", recordHandler(fiber.StatusOK, withRecordID("rule_id", s.Rules.Rule), ruleOf))
	r.Patch("/rules/:rule_id", params.WithoutQuery(s.patchRule))
	r.Delete("/rules/:rule_id", params.WithoutQuery(deleteHandler("rule_id", s.Rules.Delete)))
	r.Get("/alarms", httpd.Search, s.listAlarms)
	r.Post("/alarms/mute", params.WithoutQuery(recordHandler(fiber.StatusCreated, s.muteAlarms, muteOf)))
	r.Delete("/alarms/mute", s.unmuteAlarms)
	r.Get("/alarms/:alarm_id", recordHandler(fiber.StatusOK, withRecordID("alarm_id", s.Rules.Alarm), alarmOf))
	r.Patch("/alarms/:alarm_id", params.WithoutQuery(recordHandler(fiber.StatusOK, s.patchAlarm, alarmOf)))
}
