package netserver

import (
	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// measured reads a sensor's values: the samples where there are any, and of
// the rest what the samples do not hold.
func measured(f *decoders.Frame, name string, d document) {
	at := d.Time("updateTime")
	sampled := make(map[string]bool) // keys that samples hold
	d.Each("samples", func(sample document) { measuredSample(f, name, sample, sampled) })
	held := 0
	d.All(func(key string, v jsonbody.Value, _ document) {
		if key == "updateTime" || key == "samples" {
			return
		}
		key = name + "." + key
		if held++; held > maxSamples {
			excess(f, key)
		} else if !sampled[key] {
			addSample(f, key, v, at, false)
		}
	})
	if held == 0 && len(sampled) == 0 {
		f.Samples = append(f.Samples, decoders.Reading{Key: name, Value: 1, Time: at})
	}
	if f.SampleTime.IsZero() {
		f.SampleTime = at
	}
}

// measuredSample reads one of several samples.
func measuredSample(f *decoders.Frame, name string, d document, sampled map[string]bool) {
	at := d.Time("sampleTime")
	d.All(func(key string, v jsonbody.Value, _ document) {
		if key == "sampleTime" {
			return
		}
		key = name + "." + key
		addSample(f, key, v, at, false)
		sampled[key] = true
	})
}
