package iotapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/iot"
)

// newDevice is the input of the operations that create a device.
type newDevice struct {
	LocationID   string       `json:"location_id"`
	DecoderID    *string      `json:"decoder_id"`
	Identifier   string       `json:"identifier"`
	MACAddress   string       `json:"mac_address"`
	Name         *string      `json:"name"`
	Comment      *string      `json:"comment"`
	Longitude    *decimalText `json:"longitude"`
	Latitude     *decimalText `json:"latitude"`
	Altitude     *decimalText `json:"altitude"`
	ParserParams *document    `json:"parser_params"`
}

func (s *Surface) createDevice(kind iot.DeviceType) func(*fiber.Ctx) (iot.Device, error) {
	return func(c *fiber.Ctx) (iot.Device, error) {
		var in newDevice
		if err := decodeRequest(c, &in); err != nil {
			return iot.Device{}, err
		}
		identifier := in.Identifier
		if kind == iot.Bluetooth {
			identifier = in.MACAddress
		}
		return s.IoT.CreateDevice(c.UserContext(), httpd.AccountOf(c), iot.NewDevice{
			Type: kind, Identifier: identifier, LocationID: in.LocationID,
			DeviceChange: iot.DeviceChange{
				Name: in.Name, Comment: in.Comment, DecoderID: in.DecoderID,
				Longitude: (*string)(in.Longitude), Latitude: (*string)(in.Latitude), Altitude: (*string)(in.Altitude),
				ParserParams: (*string)(in.ParserParams),
			},
		})
	}
}

func (s *Surface) patchDevice(c *fiber.Ctx) (iot.Device, error) {
	var in struct {
		Name         *string      `json:"name"`
		Comment      *string      `json:"comment"`
		Longitude    *decimalText `json:"longitude"`
		Latitude     *decimalText `json:"latitude"`
		Altitude     *decimalText `json:"altitude"`
		DecoderID    *string      `json:"decoder_id"`
		LocationID   *string      `json:"location_id"`
		FrameLogging *string      `json:"frame_logging"`
		ParserParams *document    `json:"parser_params"`
	}
	if err := decodeRequest(c, &in); err != nil {
		return iot.Device{}, err
	}
	return s.IoT.ChangeDevice(c.UserContext(), httpd.AccountOf(c), params.Path(c, "device_id"), iot.DeviceChange{
		Name: in.Name, Comment: in.Comment, DecoderID: in.DecoderID, LocationID: in.LocationID, FrameLogging: in.FrameLogging,
		Longitude: (*string)(in.Longitude), Latitude: (*string)(in.Latitude), Altitude: (*string)(in.Altitude),
		ParserParams: (*string)(in.ParserParams),
	})
}

// locationJSON is a location as the API shows it.
type locationJSON struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Imported bool   `json:"imported"` // takes the devices that import themselves
}

func locationOf(l iot.Location) locationJSON { return locationJSON(l) }

func (s *Surface) listLocations(c *fiber.Ctx) ([]iot.Location, error) {
	return s.IoT.Locations(c.UserContext(), httpd.AccountOf(c))
}

func (s *Surface) createLocation(c *fiber.Ctx) (iot.Location, error) {
	var in struct {
		Name     string `json:"name"`
		Imported bool   `json:"imported"`
	}
	if err := decodeRequest(c, &in); err != nil {
		return iot.Location{}, err
	}
	return s.IoT.CreateLocation(c.UserContext(), httpd.AccountOf(c), iot.Location{Name: in.Name, Imported: in.Imported})
}

// deleteDevice names the device by gateway_id: the device's unique id.
func (s *Surface) deleteDevice(c *fiber.Ctx) error {
	if err := s.IoT.DeleteDevice(c.UserContext(), httpd.AccountOf(c), params.Path(c, "gateway_id")); err != nil {
		return invalidDevice(c, err)
	}
	return c.SendStatus(fiber.StatusNoContent)
}

// createdJSON is a device in responses of create operations: with numbers where get
// operations have strings, and with the MAC address if there is one.
type createdJSON struct {
	deviceJSON
	Longitude  *float64 `json:"longitude"`
	Latitude   *float64 `json:"latitude"`
	Altitude   *float64 `json:"altitude"`
	MACAddress string   `json:"mac_address,omitempty"`
}

func createdOf(d iot.Device) createdJSON {
	view := createdJSON{deviceJSON: deviceOf(d), Longitude: d.Longitude, Latitude: d.Latitude, Altitude: d.Altitude}
	if d.Type == iot.Bluetooth {
		view.MACAddress = d.Identifier
	}
	return view
}
