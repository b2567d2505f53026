package admin

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

type deviceJSON struct {
	ID           string          `json:"id"`
	Account      relay.AccountID `json:"account"`
	AccountName  string          `json:"account_name"`
	Identifier   string          `json:"identifier"`
	Name         string          `json:"name"`
	Comment      string          `json:"comment"`
	Type         iot.DeviceType  `json:"type"`
	DecoderID    string          `json:"decoder_id"`
	LocationID   string          `json:"location_id"`
	FrameLogging bool            `json:"frame_logging"`
	CreatedAt    string          `json:"created_at"`
	LastSeenAt   *string         `json:"last_seen_at"` // null if the device never sent a frame
	Position     *positionJSON   `json:"position"`
	Radio        *radioJSON      `json:"radio"`
	Alarms       int             `json:"alarms"` // raised and not cleared
}

// positionJSON is the position of a device, in degrees of WGS 84.
type positionJSON struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	// Source is "device" for an entered position and "network" for a position from an uplink.
	Source string `json:"source"`
}

// radioJSON is the newest radio data of a device.
type radioJSON struct {
	At       string   `json:"at"`
	Battery  *float64 `json:"battery"` // percent
	RSSI     *float64 `json:"rssi"`    // dBm
	SNR      *float64 `json:"snr"`     // dB
	Gateways *int64   `json:"gateways"`
}

func deviceOf(d iot.FoundDevice, names map[relay.AccountID]string, radio map[string]iot.RadioData) deviceJSON {
	view := deviceJSON{
		ID: d.ID, Account: d.Account, AccountName: names[d.Account], Identifier: d.Identifier, Name: d.Name, Comment: d.Comment, Type: d.Type,
		DecoderID: d.DecoderID, LocationID: d.LocationID, FrameLogging: d.FrameLogging, CreatedAt: formatTime(d.CreatedAt),
		LastSeenAt: formatTimeOrNil(d.LastSeen), Alarms: d.Alarms,
	}
	u, heard := radio[d.ID]
	if heard {
		view.Radio = &radioJSON{At: formatTime(u.Time), Battery: u.Battery, RSSI: u.RSSI, SNR: u.SNR, Gateways: u.Gateways}
	}
	switch {
	case d.Latitude != nil && d.Longitude != nil:
		view.Position = &positionJSON{*d.Latitude, *d.Longitude, "device"}
	case heard && u.Latitude != nil && u.Longitude != nil:
		view.Position = &positionJSON{*u.Latitude, *u.Longitude, "network"}
	}
	return view
}

// maxDevices is the maximum number of devices on a page.
const maxDevices = 500

// listDevices lists devices of one or all accounts. While the reading store is down, the list has
// no radio data and meta.missing has the reason.
func (s *Surface) listDevices(c *fiber.Ctx, sel *selection) error {
	ctx := c.UserContext()
	f := iot.DeviceFilter{
		Account: sel.account(), Text: sel.text("q"), Decoder: sel.text("decoder"), Alarmed: sel.flag("alarmed"),
		Order: oneOf(sel, "order", iot.ByAccount, iot.SilentFirst),
		Limit: min(sel.limit(), maxDevices), Cursor: sel.option("cursor"),
	}
	names, err := s.namesIfValid(sel)
	if err != nil {
		return err
	}
	for id, name := range names {
		if f.Text != "" && strings.Contains(strings.ToLower(name), strings.ToLower(f.Text)) {
			f.Named = append(f.Named, id)
		}
	}
	found, nextCursor, err := s.IoT.FindDevices(ctx, f)
	if err != nil {
		return err
	}
	radio, missing := s.radioOf(c, found)
	views := httpd.Each(found, func(d iot.FoundDevice) deviceJSON { return deviceOf(d, names, radio[d.Account]) })
	return c.JSON(fiber.Map{"data": views, "meta": fiber.Map{"next": nextCursor, "missing": missing}})
}

// radioOf returns the radio data of devices by account and device, and the reason why some data is
// missing, or "" if it is complete.
func (s *Surface) radioOf(c *fiber.Ctx, found []iot.FoundDevice) (byAccount map[relay.AccountID]map[string]iot.RadioData, missing string) {
	if s.IoT.RadioDetail() == iot.RadioOff {
		return nil, "radio data is not stored (readings.radio_data is off)"
	}
	ids := make(map[relay.AccountID][]string)
	for _, d := range found {
		ids[d.Account] = append(ids[d.Account], d.ID)
	}
	byAccount = make(map[relay.AccountID]map[string]iot.RadioData)
	for acct, deviceIDs := range ids {
		radio, err := s.IoT.Radio(c.UserContext(), acct, deviceIDs)
		if err != nil {
			return byAccount, faultText(principalOf(c), err)
		}
		byAccount[acct] = radio
	}
	return byAccount, ""
}

// deviceDetailJSON is a device with its sensors.
type deviceDetailJSON struct {
	deviceJSON
	DecoderName string             `json:"decoder_name"` // "" if the device has no decoder
	Sensors     []deviceSensorJSON `json:"sensors"`
	// Missing lists the data that could not be read, each with the reason.
	Missing []string `json:"missing"`
}

// deviceSensorJSON is a sensor of a device with its newest reading.
type deviceSensorJSON struct {
	ID            string   `json:"id"`
	Key           string   `json:"key"`
	Name          string   `json:"name"`
	SensorTypeID  string   `json:"sensor_type_id"`
	TypeName      string   `json:"type_name"`
	MetricUnits   string   `json:"metric_units"`
	Slope         float64  `json:"slope"`
	Offset        float64  `json:"offset"`
	RetentionDays int      `json:"retention_days"` // 0 means without limit
	Value         *float64 `json:"value"`
	Text          string   `json:"text"`
	At            *string  `json:"at"` // the time of the newest reading; null if there is none
}

// getDevice answers with a device. The account may be missing if only one account has the id.
func (s *Surface) getDevice(c *fiber.Ctx, sel *selection) error {
	ctx, acct := c.UserContext(), sel.account()
	if err := sel.Err(); err != nil {
		return err
	}
	acct, d, err := s.findDevice(ctx, acct, params.Path(c, "device_id"))
	if err != nil {
		return err
	}
	names, err := s.accountNames(ctx)
	if err != nil {
		return err
	}
	alarms, err := s.IoT.RaisedAlarms(ctx, acct, d.ID)
	if err != nil {
		return err
	}
	found := iot.FoundDevice{Account: acct, Device: d, Alarms: alarms}
	radio, missing := s.radioOf(c, []iot.FoundDevice{found})
	view := deviceDetailJSON{deviceJSON: deviceOf(found, names, radio[acct]), Missing: []string{}}
	if missing != "" {
		view.Missing = append(view.Missing, "signal and battery: "+missing)
	}
	if decoder, err := s.IoT.Decoder(ctx, acct, d.DecoderID); err == nil {
		view.DecoderName = decoder.Name
	} else if relay.KindOf(err) != relay.KindNotFound {
		return err
	}
	if view.Sensors, missing, err = s.sensorsOf(c, acct, d.ID); err != nil {
		return err
	}
	if missing != "" {
		view.Missing = append(view.Missing, "latest values: "+missing)
	}
	return c.JSON(fiber.Map{"data": view})
}

// sensorsOf returns a device's sensors with their newest readings, and the reason why readings are
// missing, or "" if none are.
func (s *Surface) sensorsOf(c *fiber.Ctx, acct relay.AccountID, id string) (views []deviceSensorJSON, missing string, err error) {
	ctx := c.UserContext()
	sensors, err := s.IoT.Sensors(ctx, acct, id, "")
	if err != nil {
		return nil, "", err
	}
	types, err := s.Types.SensorTypes(ctx)
	if err != nil {
		return nil, "", err
	}
	newest := make(map[string]iot.ReadingRow)
	latest, err := s.IoT.Latest(ctx, acct, id, iot.Metric)
	if err != nil {
		missing = faultText(principalOf(c), err)
	}
	for _, r := range latest {
		newest[r.SensorID] = r
	}
	views = make([]deviceSensorJSON, len(sensors))
	for i, sensor := range sensors {
		t := types[sensor.SensorTypeID]
		views[i] = deviceSensorJSON{
			ID: sensor.ID, Key: sensor.Key, Name: sensor.Name, SensorTypeID: sensor.SensorTypeID, TypeName: t.Name, MetricUnits: t.MetricUnits,
			Slope: sensor.Slope, Offset: sensor.Offset, RetentionDays: sensor.RetentionDays,
		}
		if r, found := newest[sensor.ID]; found {
			views[i].Value, views[i].At = r.Value, rfc3339(r.ReadingDate)
			if r.Text != nil {
				views[i].Text = *r.Text
			}
		}
	}
	return views, missing, nil
}

// rfc3339 converts a time from iot.TimeFormat or ledger.TimeFormat to RFC 3339.
func rfc3339(date string) *string { return new(strings.Replace(date, " ", "T", 1) + "Z") }

type claimJSON struct {
	iot.Ownership
	AccountName string `json:"account_name"`
}

// listIdentifiers lists device EUIs and MAC addresses with the accounts that claimed them.
func (s *Surface) listIdentifiers(c *fiber.Ctx, sel *selection) error {
	prefix, cursor, limit := sel.text("q"), sel.option("cursor"), sel.limit()
	names, err := s.namesIfValid(sel)
	if err != nil {
		return err
	}
	ownerships, nextCursor, err := s.IoT.Ownerships(c.UserContext(), prefix, cursor, limit)
	if err != nil {
		return err
	}
	return sendPage(c, httpd.Each(ownerships, func(o iot.Ownership) claimJSON {
		return claimJSON{o, names[o.Account]}
	}), nextCursor)
}

// releaseIdentifier ends a claim, so that another account can claim the identifier.
func (s *Surface) releaseIdentifier(c *fiber.Ctx) error {
	owner, err := s.IoT.ReleaseOwnership(c.UserContext(), params.Path(c, "identifier"))
	if err != nil {
		return err
	}
	n := httpd.NoteOf(c)
	n.Target, n.Account, n.Before = owner.Identifier, owner.Account, owner
	return c.SendStatus(fiber.StatusNoContent)
}
