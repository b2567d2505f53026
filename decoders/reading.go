package decoders

import (
	"context"
	"time"
)

// Reading is one value under the key a codec gave it. Nested keys are joined
// with dots ("air.temperature", "list.0.x").
type Reading struct {
	Key    string
	Value  float64 // finite; 0 or 1 for booleans; meaningless when IsText
	Text   string
	IsText bool
	// Time is the sample's own time; zero means the frame's.
	Time time.Time
}

// Result holds the readings that a codec made of a frame. Warnings and Errors are the codec's
// own remarks, kept with the readings it gave nevertheless.
type Result struct {
	Readings []Reading
	Warnings []string
	Errors   []string
	// Excess is set if there were more readings than one frame may give, and names which are
	// left out; empty when all are there.
	Excess string
	// LimitExceeded is set if the codec was ended at its limit of time or memory.
	LimitExceeded bool
}

// Decoded is the result for one frame of a batch.
type Decoded struct {
	Result
	Err  error
	Took time.Duration // CPU time
	// Skipped is set if the time of the batch was used up before the frame's turn.
	Skipped bool
}

// Decoder turns a frame into readings. It is safe for concurrent use and does
// not change the frame.
//
// An error may come with a Result: the readings made before the place where
// decoding stopped are worth keeping.
type Decoder interface {
	Decode(f *Frame) (Result, error)
}

// BatchDecoder is implemented by decoders that run elsewhere, where one request for many
// frames costs little more than one for a single frame.
type BatchDecoder interface {
	// DecodeBatch decodes the frames in order and returns a Decoded for each. It skips
	// frames once it has used budget; 0 means no budget. At most one batch of an owner runs
	// at a time. An error means that the frames could not be run at all: the caller tries
	// again later.
	DecodeBatch(ctx context.Context, owner int64, frames []*Frame, budget time.Duration) ([]Decoded, error)
}

// Elements counts the values of a decoded JSON value, nested ones and one for each 64
// bytes of a text, and returns what is left of a budget: less than 0 if it does not
// suffice.
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
			if remaining < 0 {
				break
			}
			remaining = Elements(x, remaining)
		}
	}
	return remaining
}
