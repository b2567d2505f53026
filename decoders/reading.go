package decoders

import (
	"context"
	"time"
)

// Reading is one decoded value. The names of nested keys are joined
// with dots ("air.temperature", "list.0.x").
type Reading struct {
	Key    string
	Value  float64 // finite; 0 or 1 for booleans; unused if IsText
	Text   string  `json:",omitempty"`
	IsText bool    `json:",omitempty"`
	// Time is the time of the sample; zero means the frame's time.
	Time time.Time `json:",omitzero"`
}

// Result holds the readings that a codec decoded from a frame. Warnings and Errors are
// reported by the codec itself.
type Result struct {
	Readings []Reading `json:",omitempty"`
	Warnings []string  `json:",omitempty"`
	Errors   []string  `json:",omitempty"`
	// Excess is set if readings are omitted because there are too many. The text names the first
	// omitted reading or the value that contains it.
	Excess string `json:",omitempty"`
	// LimitExceeded is set if the codec exceeded its limit of time or memory.
	LimitExceeded bool `json:",omitempty"`
}

// Decoded is the result for one frame of a batch.
type Decoded struct {
	Result
	Err     error         `json:"-"`
	CPUTime time.Duration // CPU time
	// Skipped is set if the frame was not decoded because the budget of the batch was used up.
	Skipped bool `json:",omitempty"`
}

// Decoder decodes frames. It is safe for concurrent use and does
// not modify the frame. A Result that is returned with an error has the readings before the
// place of the error.
type Decoder interface {
	Decode(f *Frame) (Result, error)
}

// BatchDecoder is implemented by decoders that run in another process, where a request for
// many frames costs little more than a request for one.
type BatchDecoder interface {
	// DecodeBatch decodes the frames in order and returns a Decoded for each. It skips the
	// remaining frames after it has used budget; 0 means no limit. At most one batch of an
	// owner runs at a time. An error means that no frame was decoded and that the caller
	// should retry later.
	DecodeBatch(ctx context.Context, owner int64, frames []*Frame, budget time.Duration) ([]Decoded, error)
}

// Elements subtracts the size of a decoded JSON value from a budget and returns the remaining
// budget, which is negative if the value is too large. The size counts each nested value and
// each 64 bytes of a text as 1.
func Elements(v any, remaining int) int {
	remaining--
	switch v := v.(type) {
	case string:
		remaining -= len(v) >> 6
	case []any:
		for i := 0; i < len(v) && remaining >= 0; i++ {
			remaining = Elements(v[i], remaining)
		}
	case map[string]any:
		for _, x := range v {
			if remaining >= 0 {
				remaining = Elements(x, remaining)
			}
		}
	}
	return remaining
}
