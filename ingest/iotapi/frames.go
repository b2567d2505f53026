package iotapi

import (
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/iot"
)

func (s *Surface) listFrames(c *fiber.Ctx) ([]iot.RawFrame, error) {
	return s.IoT.Frames(c.UserContext(), httpd.AccountOf(c), params.Path(c, "device_id"))
}

// frameJSON is a raw frame as the API shows it.
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
		ID: f.ID, ReceivedAt: formatTime(f.ReceivedAt), Time: formatTimeOrNil(f.Time), Sender: f.Sender, Kind: f.Kind,
		FCnt: f.FCnt, FPort: f.FPort, Payload: f.Payload, Encrypted: f.Encrypted, Object: f.Object, Samples: f.Samples,
		Truncated: f.Truncated, RSSI: f.RSSI, SNR: f.SNR, Gateways: f.Gateways, Refused: f.Refused, Note: f.Note,
	}
}
