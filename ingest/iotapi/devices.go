package iotapi

import (
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/iot"
)

func (s *Surface) listSensors(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	sensors, err := s.iot.Sensors(c.UserContext(), httpd.AccountOf(c), param(c, "device_id"), query(c, "searchKey"))
	if err != nil {
		return err
	}
	return list(c, page, sensors, sensorOf)
}

func (s *Surface) listReadings(c *fiber.Ctx) error {
	q := iot.Query{Account: httpd.AccountOf(c), DeviceID: param(c, "device_id")}
	p := iot.Problems{}
	q.From, q.To = moment(c, p, "startDate"), moment(c, p, "endDate")
	q.Limit = limit(c, p)
	if err := p.Err(); err != nil {
		return err
	}
	records, err := s.iot.Readings(c.UserContext(), q)
	if err != nil {
		return err
	}
	return data(c, fiber.StatusOK, records)
}

// moment reads a time of the query, in UTC.
func moment(c *fiber.Ctx, p iot.Problems, name string) time.Time {
	text := c.Query(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.ParseInLocation(iot.TimeFormat, text, time.UTC)
	if err != nil {
		p.Add(name, "The "+name+" does not match the format YYYY-MM-DD HH:mm:ss.")
	}
	return t
}

func limit(c *fiber.Ctx, p iot.Problems) int {
	text := c.Query("limit")
	if text == "" {
		return iot.MaxReadings
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > iot.MaxReadings {
		p.Add("limit", "The limit must be between 1 and 1000.")
	}
	return n
}

func (s *Surface) latestReadings(c *fiber.Ctx) error {
	records, err := s.iot.Latest(c.UserContext(), httpd.AccountOf(c), param(c, "device_id"))
	if err != nil {
		return err
	}
	return data(c, fiber.StatusOK, records)
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
	return list(c, page, devices, deviceOf)
}

func (s *Surface) getDeviceByIdentifier(c *fiber.Ctx) error {
	d, err := s.iot.DeviceByIdentifier(c.UserContext(), httpd.AccountOf(c), param(c, "device_identifier"))
	if err != nil {
		return invalidDevice(c, err)
	}
	return c.JSON(deviceOf(d))
}

func (s *Surface) getDevice(c *fiber.Ctx) error {
	d, err := s.iot.Device(c.UserContext(), httpd.AccountOf(c), param(c, "device_id"))
	if err != nil {
		return invalidDevice(c, err)
	}
	return c.JSON(deviceOf(d))
}

func (s *Surface) patchSensor(c *fiber.Ctx) error {
	var in iot.SensorChange
	if err := body(c, &in); err != nil {
		return err
	}
	sensor, err := s.iot.ChangeSensor(c.UserContext(), httpd.AccountOf(c), param(c, "sensor_id"), in)
	if err != nil {
		return err
	}
	return data(c, fiber.StatusOK, sensorOf(sensor))
}
