package iotapi

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

func (s *Surface) addEventMarker(c *fiber.Ctx) error {
	var in struct {
		ID            string `json:"event_marker_id"`
		Comment       string `json:"comment"`
		DatePublished string `json:"date_published"`
	}
	if err := decodeRequest(c, &in); err != nil {
		return err
	}
	m := iot.Marker{ID: in.ID, Comment: in.Comment}
	p := relay.Problems{}
	m.CreatedAt = parseMarkerTime(p, in.DatePublished)
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

// parseMarkerTime parses date_published, in UTC unless it has a zone; zero if it is
// empty.
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

func (s *Surface) listEventMarkers(c *fiber.Ctx) ([]iot.Marker, error) {
	return s.IoT.Markers(c.UserContext(), httpd.AccountOf(c), params.Path(c, "device_id"))
}

// markerJSON is an event marker as the API shows it.
type markerJSON struct {
	ID        string `json:"id"`
	Comment   string `json:"comment"`
	CreatedAt string `json:"created_at"`
}

func markerOf(m iot.Marker) markerJSON {
	return markerJSON{ID: m.ID, Comment: m.Comment, CreatedAt: formatTime(m.CreatedAt)}
}
