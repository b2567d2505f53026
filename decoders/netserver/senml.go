package netserver

import (
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/senml"
)

// parseSenML reads a SenML pack (RFC 8428) and makes one frame of each device
// named in it, its measurements as Samples. The first time of a device's records is the frame's. The device is named by the address
// or else by the records' names. Times relative to now count from the receipt.
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

// noteUnknown notes the members of a record that are not known.
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
	// An EUI-64 is known by its digits, in whatever kind of name they stand.
	id := strings.TrimPrefix(strings.TrimPrefix(device, "urn:dev:mac:"), "urn:dev:DEVEUI:")
	if eui, ok := decoders.NormalizeDevEUI(id); ok {
		f.Identifier, f.IsDevEUI = eui, true
	}
	return f, nil
}
