package netserver

import (
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/senml"
)

// parseSenML parses a SenML pack (RFC 8428) into one frame for each device, whose measurements
// are Samples. The time of the frame is the first time of the device's records. The device is
// identified by the address or by the names of the records. Times relative to now count from
// ReceivedAt.
func parseSenML(p Post) ([]decoders.Frame, error) {
	records, err := senml.Parse(p.Body, p.ReceivedAt)
	var frames []decoders.Frame
	index := make(map[string]int)
	for _, r := range records {
		device, key := senml.SplitName(r.Name)
		if p.DeviceID != "" {
			device = p.DeviceID
		}
		i, known := index[device]
		if !known {
			f, nameErr := senMLFrame(device)
			if nameErr != nil {
				return frames, nameErr
			}
			i = len(frames)
			index[device] = i
			frames = append(frames, f)
		}
		f := &frames[i]
		if f.SampleTime.IsZero() {
			f.SampleTime = r.Time
		}
		f.Samples = r.AppendReadings(f.Samples, key)
		noteUnknown(f, r)
	}
	return frames, err
}

// noteUnknown warns of the unknown members of a record.
func noteUnknown(f *decoders.Frame, r senml.Record) {
	for _, member := range r.Unknown[:min(len(r.Unknown), max(maxWarnings-len(f.Warnings), 0))] {
		f.Warnings = append(f.Warnings, member+senml.NotUsed)
	}
}

func senMLFrame(device string) (decoders.Frame, error) {
	f := decoders.Frame{Sender: string(SenML), Kind: decoders.Uplink, Identifier: device}
	if device == "" {
		return f, &decoders.Error{Format: f.Sender, Field: "bn", Offset: -1,
			Reason: "is missing, and neither the names nor the address name a device"}
	}
	// Recognise an EUI-64 in each form of name.
	id := strings.TrimPrefix(strings.TrimPrefix(device, "urn:dev:mac:"), "urn:dev:DEVEUI:")
	if eui, ok := decoders.NormalizeDevEUI(id); ok {
		f.Identifier, f.IsDevEUI = eui, true
	}
	return f, nil
}
