package decoders

import "time"

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
// own remarks, kept beside the readings it gave nevertheless.
type Result struct {
	Readings []Reading
	Warnings []string
	Errors   []string
	// Excess is set if there were more readings than one frame may give, and says
	// which are left out; empty when all are there.
	Excess string
	// OutOfTime is set if the codec was ended at its time limit.
	OutOfTime bool
}

// Decoder turns a frame into readings. It is safe for concurrent use and does
// not change the frame.
//
// An error may come with a Result: the readings made before the place where
// decoding stopped are worth keeping.
type Decoder interface {
	Decode(f *Frame) (Result, error)
}
