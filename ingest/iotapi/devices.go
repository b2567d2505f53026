package iotapi

import (
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
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
	var request struct {
		Name          *string  `json:"name"`
		Slope         *number  `json:"slope"`
		Offset        *number  `json:"offset"`
		RetentionDays *integer `json:"retention_days"`
	}
	if err := decodeRequest(c, &request); err != nil {
		return iot.Sensor{}, err
	}
	return s.IoT.ChangeSensor(c.UserContext(), httpd.AccountOf(c), params.Path(c, "sensor_id"), iot.SensorChange{
		Name: request.Name, Slope: (*float64)(request.Slope), Offset: (*float64)(request.Offset), RetentionDays: (*int)(request.RetentionDays),
	})
}

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
		var request newDevice
		if err := decodeRequest(c, &request); err != nil {
			return iot.Device{}, err
		}
		identifier := request.Identifier
		if kind == iot.Bluetooth {
			identifier = request.MACAddress
		}
		return s.IoT.CreateDevice(c.UserContext(), httpd.AccountOf(c), iot.NewDevice{
			Type: kind, Identifier: identifier, LocationID: request.LocationID,
			DeviceChange: iot.DeviceChange{
				Name: request.Name, Comment: request.Comment, DecoderID: request.DecoderID,
				Longitude: (*string)(request.Longitude), Latitude: (*string)(request.Latitude), Altitude: (*string)(request.Altitude),
				ParserParams: (*string)(request.ParserParams),
			},
		})
	}
}

func (s *Surface) patchDevice(c *fiber.Ctx) (iot.Device, error) {
	var request struct {
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
	if err := decodeRequest(c, &request); err != nil {
		return iot.Device{}, err
	}
	return s.IoT.ChangeDevice(c.UserContext(), httpd.AccountOf(c), params.Path(c, "device_id"), iot.DeviceChange{
		Name: request.Name, Comment: request.Comment, DecoderID: request.DecoderID, LocationID: request.LocationID, FrameLogging: request.FrameLogging,
		Longitude: (*string)(request.Longitude), Latitude: (*string)(request.Latitude), Altitude: (*string)(request.Altitude),
		ParserParams: (*string)(request.ParserParams),
	})
}

type locationJSON struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Imported bool   `json:"imported"` // for devices that are created automatically
}

func locationOf(l iot.Location) locationJSON { return locationJSON(l) }

func (s *Surface) createLocation(c *fiber.Ctx) (iot.Location, error) {
	var request struct {
		Name     string `json:"name"`
		Imported bool   `json:"imported"`
	}
	if err := decodeRequest(c, &request); err != nil {
		return iot.Location{}, err
	}
	return s.IoT.CreateLocation(c.UserContext(), httpd.AccountOf(c), iot.Location{Name: request.Name, Imported: request.Imported})
}

// createdJSON is a device in the answers of create operations. Its coordinates are numbers, while
// get operations have strings, and a Bluetooth device has its MAC address.
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

func (s *Surface) addEventMarker(c *fiber.Ctx) error {
	var request struct {
		ID            string `json:"event_marker_id"`
		Comment       string `json:"comment"`
		DatePublished string `json:"date_published"`
	}
	if err := decodeRequest(c, &request); err != nil {
		return err
	}
	m := iot.Marker{ID: request.ID, Comment: request.Comment}
	p := relay.Problems{}
	m.CreatedAt = parseMarkerTime(p, request.DatePublished)
	if err := p.Err(); err != nil {
		return err
	}
	m, created, err := s.IoT.AddMarker(c.UserContext(), httpd.AccountOf(c), params.Path(c, "device_id"), m)
	if err != nil {
		return err
	}
	status := fiber.StatusOK
	if created {
		status = fiber.StatusCreated
	}
	return sendData(c, status, markerOf(m))
}

// parseMarkerTime parses date_published, in UTC unless it has a zone; zero if it is empty.
func parseMarkerTime(p relay.Problems, text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	if t, ok := iso8601.Parse(text); ok && t.Year() > 0 {
		return t
	}
	p.Add("date_published", "The date published does not match the format YYYY-MM-DD HH:mm:ss.")
	return time.Time{}
}

type markerJSON struct {
	ID        string `json:"id"`
	Comment   string `json:"comment"`
	CreatedAt string `json:"created_at"`
}

func markerOf(m iot.Marker) markerJSON {
	return markerJSON{ID: m.ID, Comment: m.Comment, CreatedAt: formatTime(m.CreatedAt)}
}

type frameJSON struct {
	ID         string          `json:"id"`
	ReceivedAt string          `json:"received_at"`
	Time       *string         `json:"time"`
	Sender     string          `json:"sender"`
	Kind       string          `json:"kind"`
	FCnt       *int64          `json:"f_cnt"`
	FPort      *int64          `json:"f_port"`
	Payload    string          `json:"payload"`
	Encrypted  bool            `json:"encrypted"`
	Object     json.RawMessage `json:"object"`
	Samples    json.RawMessage `json:"samples"`
	Truncated  bool            `json:"truncated"`
	RSSI       *float64        `json:"rssi"`
	SNR        *float64        `json:"snr"`
	Gateways   int             `json:"gateways"`
	Refused    string          `json:"refused"`
	Note       string          `json:"note"`
}

func frameOf(f iot.RawFrame) frameJSON {
	return frameJSON{
		ID: f.ID, ReceivedAt: formatTime(f.ReceivedAt), Time: httpd.TimeOrNull(f.Time, iot.TimeFormat), Sender: f.Sender, Kind: f.Kind,
		FCnt: f.FCnt, FPort: f.FPort, Payload: f.Payload, Encrypted: f.Encrypted, Object: f.Object, Samples: f.Samples,
		Truncated: f.Truncated, RSSI: f.RSSI, SNR: f.SNR, Gateways: f.Gateways, Refused: f.Refused, Note: f.Note,
	}
}
