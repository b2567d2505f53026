package iotapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/iot"
)

func (s *Surface) listSensors(c *fiber.Ctx) error {
	i := listInput(c)
	name, page := i.Text("searchKey"), i.page()
	if err := i.Err(); err != nil {
		return err
	}
	sensors, err := s.IoT.Sensors(c.UserContext(), httpd.AccountOf(c), params.Path(c, "device_id"), name)
	if err != nil {
		return err
	}
	return sendPage(c, page, sensors, sensorOf)
}

func (s *Surface) listDevices(c *fiber.Ctx) ([]iot.Device, error) {
	return s.IoT.Devices(c.UserContext(), httpd.AccountOf(c))
}

func (s *Surface) getDeviceByIdentifier(c *fiber.Ctx) error {
	d, err := s.IoT.DeviceByIdentifier(c.UserContext(), httpd.AccountOf(c), params.Path(c, "device_identifier"))
	if err != nil {
		return invalidDevice(c, err)
	}
	return c.JSON(deviceOf(d))
}

func (s *Surface) getDevice(c *fiber.Ctx) error {
	d, err := s.IoT.Device(c.UserContext(), httpd.AccountOf(c), params.Path(c, "device_id"))
	if err != nil {
		return invalidDevice(c, err)
	}
	return c.JSON(deviceOf(d))
}

func (s *Surface) patchSensor(c *fiber.Ctx) (iot.Sensor, error) {
	var in struct {
		Name          *string  `json:"name"`
		Slope         *number  `json:"slope"`
		Offset        *number  `json:"offset"`
		RetentionDays *integer `json:"retention_days"`
	}
	if err := decodeRequest(c, &in); err != nil {
		return iot.Sensor{}, err
	}
	return s.IoT.ChangeSensor(c.UserContext(), httpd.AccountOf(c), params.Path(c, "sensor_id"), iot.SensorChange{
		Name: in.Name, Slope: (*float64)(in.Slope), Offset: (*float64)(in.Offset), RetentionDays: (*int)(in.RetentionDays),
	})
}
