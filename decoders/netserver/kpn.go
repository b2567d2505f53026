package netserver

import (
	"cmp"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/senml"
)

// kpnFrame is the frame of one device in a pack of KPN Things: SenML with the records payload
// and port. Other records with values were decoded by KPN and become Samples.
type kpnFrame struct {
	f        decoders.Frame
	lat, lon *float64
	err      error
}

// parseKPN parses one frame for each device of a pack.
func parseKPN(p Post) ([]decoders.Frame, error) {
	records, packErr := senml.Parse(p.Body, p.ReceivedAt)
	var devices []*kpnFrame
	index := make(map[string]*kpnFrame)
	for _, r := range records {
		device, key := senml.SplitName(r.Name)
		k := index[device]
		if k == nil {
			f, err := senMLFrame(device)
			f.Sender = string(KPN)
			k = &kpnFrame{f: f, err: err}
			index[device] = k
			devices = append(devices, k)
		}
		k.add(key, r)
	}
	var frames []decoders.Frame
	for _, k := range devices {
		if len(frames) >= maxFrames {
			return frames, tooMany(string(KPN))
		}
		if k.err != nil {
			packErr = cmp.Or(packErr, k.err)
			continue
		}
		// Distinguish a frame from a position that the network computed.
		f := &k.f
		f.Position = place(k.lat, k.lon)
		if f.Position != nil && f.Payload == nil && len(f.Samples) == 0 {
			f.Kind = decoders.Location
		}
		// Include the content, because some times have a precision of one second only.
		if !f.NetworkTime.IsZero() {
			f.DedupID = timeID(f) + ":" + strconv.Itoa(f.FPort) + ":" + hex.EncodeToString(f.Payload)
			if len(f.Samples) > 0 {
				f.DedupID += ":" + f.Samples[0].Key
			}
		}
		frames = append(frames, k.f)
	}
	return frames, packErr
}

func (k *kpnFrame) add(key string, r senml.Record) {
	f := &k.f
	noteUnknown(f, r)
	if f.NetworkTime.IsZero() {
		f.NetworkTime = r.Time
	}
	switch {
	case key == "payload" && r.Kind == senml.Text:
		b, err := hex.DecodeString(r.Text)
		if err != nil {
			k.err = &decoders.Error{Format: f.Sender, Field: "payload", Offset: -1, Reason: "is not hex"}
		} else if len(b) > 0 {
			f.Payload = b
		}
	case key == "port" && isWholeNumber(r, 255):
		f.FPort, f.HasFPort = int(r.Value), true
	case (key == "FCntUp" || key == "fCntUp") && isWholeNumber(r, 1<<32-1):
		f.FCnt, f.HasFCnt = int64(r.Value), true
	case key == "latitude" && r.Kind == senml.Number:
		k.lat = &r.Value
	case key == "longitude" && r.Kind == senml.Number:
		k.lon = &r.Value
	case key == "timeOrigin", key == "locOrigin", key == "radius":
	default:
		f.Samples = r.AppendReadings(f.Samples, key) // the limit of a pack is lower than the limit of a frame
	}
}

func isWholeNumber(r senml.Record, limit float64) bool {
	return r.Kind == senml.Number && r.Value >= 0 && r.Value <= limit && r.Value == math.Trunc(r.Value)
}
