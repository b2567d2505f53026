package javascript

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/dop251/goja"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/values"
)

// normalize adds the values that normalizeUplink returns for a codec's data, except values with
// a key that the codec returned. If normalizeUplink fails, only the codec's values are returned.
func (r *realm) normalize(f goja.Callable, data goja.Value, res *decoders.Result) {
	const name = "normalizeUplink"
	input := r.vm.NewObject()
	_ = input.Set("data", data)
	v, err := f(goja.Undefined(), input)
	if err != nil {
		res.Errors = append(res.Errors, r.failure(name, err).Error())
		return
	}
	var ownResult decoders.Result
	export := exporter{r: r}
	normalized, err := export.readEnvelope(name, v, &ownResult)
	var value any
	if err == nil && normalized != nil {
		value = export.value(normalized, 0)
	}
	switch {
	case err != nil:
		ownResult.Errors = append(ownResult.Errors, err.Error())
	case export.limitError != "":
		ownResult.Errors = append(ownResult.Errors, name+": "+export.limitError)
	default:
		addMeasurements(&ownResult, value)
	}
	res.Warnings = append(res.Warnings, ownResult.Warnings...)
	res.Errors = append(res.Errors, ownResult.Errors...)
	res.Excess = cmp.Or(res.Excess, ownResult.Excess)
	// Add the readings with new keys and times.
	taken := slots(res.Readings)
	for _, reading := range ownResult.Readings {
		switch {
		case taken[slotOf(reading)]:
		case len(res.Readings) >= values.MaxReadings:
			res.Excess = fmt.Sprintf("%s: a frame may have at most %d readings; the others are ignored", reading.Key, values.MaxReadings)
		default:
			res.Readings = append(res.Readings, reading)
		}
	}
}

// addMeasurements adds the data of normalizeUplink: one measurement or a list of measurements. The
// readings have the time of their measurement. If measurements without a time have the same
// key, the index in the list precedes the key of all but the first.
func addMeasurements(res *decoders.Result, v any) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	taken := slots(res.Readings)
	for i, value := range list {
		m, _ := value.(map[string]any)
		if t, remaining, ok := values.CutTime(m); ok {
			oldCount := len(res.Readings)
			values.AppendAt(res, "", remaining, t)
			maps.Copy(taken, slots(res.Readings[oldCount:]))
			continue
		}
		var ownResult decoders.Result
		values.AppendTimed(&ownResult, "", m)
		for _, reading := range ownResult.Readings {
			if taken[slotOf(reading)] {
				reading.Key = fmt.Sprintf("%d.%s", i, reading.Key)
			}
			taken[slotOf(reading)] = true
			res.Readings = append(res.Readings, reading)
		}
		res.Warnings = append(res.Warnings, ownResult.Warnings...)
		res.Excess = cmp.Or(res.Excess, ownResult.Excess)
	}
}

// slot identifies a reading of a frame.
type slot struct {
	key         string
	nanoseconds int64
}

func slotOf(r decoders.Reading) slot { return slot{r.Key, r.Time.UnixNano()} }

func slots(readings []decoders.Reading) map[slot]bool {
	result := make(map[slot]bool, len(readings))
	for _, r := range readings {
		result[slotOf(r)] = true
	}
	return result
}
