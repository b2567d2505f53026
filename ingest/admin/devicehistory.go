package admin

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// bucketJSON is the readings of a sensor in one interval.
type bucketJSON struct {
	At   string   `json:"at"` // when the interval begins
	Min  *float64 `json:"min"`
	Mean *float64 `json:"mean"`
	Max  *float64 `json:"max"`
}

// sensorSeriesJSON is a sensor's numbers over time.
type sensorSeriesJSON struct {
	SensorID    string       `json:"sensor_id"`
	Key         string       `json:"key"`
	Name        string       `json:"name"` // the sensor type's
	MetricUnits string       `json:"metric_units"`
	Buckets     []bucketJSON `json:"buckets"`
}

// fewestBuckets is how many intervals a range is divided into, at least, where the
// granularity is left to the gateway.
const fewestBuckets = 120

// granularityOf returns the widest granularity with enough buckets in a range.
func granularityOf(d time.Duration) iot.Granularity {
	all := iot.Granularities()
	for _, g := range slices.Backward(all) {
		if width, _ := g.Width(); width > 0 && d/width >= fewestBuckets {
			return g
		}
	}
	return all[0]
}

// aggregateDevice returns the minimum, mean and maximum of a device's numbers, by
// sensor. Without a range it is the last day's.
func (s *Surface) aggregateDevice(c *fiber.Ctx, sel *selection) error {
	from, to := sel.moment("from"), sel.moment("to")
	granularity := oneOf(sel, "granularity", iot.Granularities()...)
	if to.IsZero() {
		to = s.Now().UTC()
	}
	if from.IsZero() {
		from = to.Add(-24 * time.Hour)
	}
	if !from.Before(to) {
		sel.Add("from", "want a time before to")
	}
	acct, d, err := s.ofDevice(c, sel)
	if err != nil {
		return err
	}
	if granularity == "" {
		granularity = granularityOf(to.Sub(from))
	}
	records, err := s.IoT.Aggregate(c.UserContext(), iot.AggregateQuery{
		Query: iot.Query{Account: acct, DeviceID: d.ID, From: from, To: to}, Statistic: iot.MinAveMax, Granularity: granularity,
	}, iot.Metric)
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": seriesOf(records), "meta": fiber.Map{"from": formatTime(from), "to": formatTime(to), "granularity": granularity}})
}

func seriesOf(records []iot.AggregateRow) []sensorSeriesJSON {
	out, at := []sensorSeriesJSON{}, make(map[string]int)
	for _, r := range records {
		i, there := at[r.SensorID]
		if !there {
			i = len(out)
			at[r.SensorID] = i
			out = append(out, sensorSeriesJSON{SensorID: r.SensorID, Key: r.Key, Name: r.Name, MetricUnits: r.MetricUnits})
		}
		out[i].Buckets = append(out[i].Buckets, bucketJSON{*rfc3339(r.ReadingDate), r.Min, r.Ave, r.Max})
	}
	return out
}

// rawFrameJSON is a raw frame of the frame log.
type rawFrameJSON struct {
	Event      string          `json:"event"` // that brought it
	ReceivedAt string          `json:"received_at"`
	Time       *string         `json:"time"`
	Sender     string          `json:"sender"`
	Kind       string          `json:"kind"`
	FCnt       *int64          `json:"f_cnt"`
	FPort      *int64          `json:"f_port"`
	Payload    string          `json:"payload"` // hex
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

// maxOfDevice is the most raw frames or event markers of an answer.
const maxOfDevice = 500

// listOfDevice answers with what list finds of a device.
func listOfDevice[A, B any](s *Surface, list func(context.Context, relay.AccountID, string) ([]A, error), shown func(A) B) func(*fiber.Ctx, *selection) error {
	return func(c *fiber.Ctx, sel *selection) error {
		acct, d, err := s.ofDevice(c, sel)
		if err != nil {
			return err
		}
		found, err := list(c.UserContext(), acct, d.ID)
		if err != nil {
			return err
		}
		return c.JSON(fiber.Map{"data": httpd.Each(found[:min(len(found), maxOfDevice)], shown)})
	}
}

func rawFrameOf(f iot.RawFrame) rawFrameJSON {
	return rawFrameJSON{
		Event: f.ID, ReceivedAt: formatTime(f.ReceivedAt), Time: formatTimeOrNil(f.Time), Sender: f.Sender, Kind: f.Kind, FCnt: f.FCnt, FPort: f.FPort,
		Payload: f.Payload, Encrypted: f.Encrypted, Object: f.Object, Samples: f.Samples, Truncated: f.Truncated, RSSI: f.RSSI, SNR: f.SNR,
		Gateways: f.Gateways, Refused: f.Refused, Note: f.Note,
	}
}

// markerJSON is an event marker of a device.
type markerJSON struct {
	ID      string `json:"id"`
	At      string `json:"at"`
	Comment string `json:"comment"`
}

func markerOf(m iot.Marker) markerJSON { return markerJSON{m.ID, formatTime(m.CreatedAt), m.Comment} }
