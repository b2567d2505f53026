package iotapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/iot"
)

func (s *Surface) listSensors(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	sensors, err := s.iot.Sensors(c.UserContext(), httpd.AccountOf(c), params.Path(c, "device_id"), params.Query(c, "searchKey"))
	if err != nil {
		return err
	}
	return sendPage(c, page, sensors, sensorOf)
}

func (s *Surface) listDevices(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	devices, err := s.iot.Devices(c.UserContext(), httpd.AccountOf(c))
	if err != nil {
		return err
	}
	return sendPage(c, page, devices, deviceOf)
}

func (s *Surface) getDeviceByIdentifier(c *fiber.Ctx) error {
	d, err := s.iot.DeviceByIdentifier(c.UserContext(), httpd.AccountOf(c), params.Path(c, "device_identifier"))
	if err != nil {
		return invalidDevice(c, err)
	}
	return c.JSON(deviceOf(d))
}

func (s *Surface) getDevice(c *fiber.Ctx) error {
	d, err := s.iot.Device(c.UserContext(), httpd.AccountOf(c), params.Path(c, "device_id"))
	if err != nil {
		return invalidDevice(c, err)
	}
	return c.JSON(deviceOf(d))
}

func (s *Surface) patchSensor(c *fiber.Ctx) error {
	var in iot.SensorChange
	if err := decodeRequest(c, &in); err != nil {
		return err
	}
	sensor, err := s.iot.ChangeSensor(c.UserContext(), httpd.AccountOf(c), params.Path(c, "sensor_id"), in)
	if err != nil {
		return err
	}
	return sendData(c, fiber.StatusOK, sensorOf(sensor))
}
