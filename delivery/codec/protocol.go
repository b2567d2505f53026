package codec

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/penstock/penstock/decoders"
)

const (
	// maxRequest bounds a request: a source of 4 MiB as JSON and the frames of a batch.
	maxRequest = 32 << 20
	// maxResponse bounds a response: maxResults and the result of one more frame, which
	// has at most 20,000 values and 262,144 characters.
	maxResponse = 24 << 20
	// maxResults is the size of results, in octets, from which a worker answers and leaves
	// the remaining frames to another request.
	maxResults = 1 << 20
)

// request makes a worker run a codec on frames. Without frames, it checks the source.
type request struct {
	Hash   string        `json:"hash"`
	Source string        `json:"source,omitempty"`
	Frames []frame       `json:"frames,omitempty"`
	Budget time.Duration `json:"budget,omitempty"` // CPU time after which no other frame begins
}

// frame is the part of decoders.Frame that a codec can read.
type frame struct {
	Payload     []byte         `json:"payload,omitempty"`
	FPort       int            `json:"port,omitempty"`
	FCnt        int64          `json:"fcnt,omitempty"`
	Identifier  string         `json:"id,omitempty"`
	Name        string         `json:"name,omitempty"`
	Params      map[string]any `json:"params,omitempty"`
	NetworkTime time.Time      `json:"network,omitzero"`
	SampleTime  time.Time      `json:"sample,omitzero"`
}

// response answers a request. Results has the results of the first frames; frames
// that are missing at its end were not run.
type response struct {
	// Unknown is set if the worker needs the source.
	Unknown bool `json:"unknown,omitempty"`
	// Invalid is the reason why the source cannot be used.
	Invalid *failure `json:"invalid,omitempty"`
	Results []result `json:"results,omitempty"`
	// Compiled is the CPU time of compiling the source; 0 if it was compiled before.
	Compiled time.Duration `json:"compiled,omitempty"`
	// Ends is set if the worker exits after this response.
	Ends bool `json:"ends,omitempty"`
}

type result struct {
	Readings []reading     `json:"readings,omitempty"`
	Warnings []string      `json:"warnings,omitempty"`
	Errors   []string      `json:"errors,omitempty"`
	Excess   string        `json:"excess,omitempty"`
	Exceeded bool          `json:"exceeded,omitempty"`
	Failure  *failure      `json:"failure,omitempty"`
	Took     time.Duration `json:"took"`
}

// reading is a decoders.Reading; a text has no value.
type reading struct {
	Key   string    `json:"k"`
	Value float64   `json:"v,omitempty"`
	Text  *string   `json:"t,omitempty"`
	Time  time.Time `json:"at,omitzero"`
}

type failure struct {
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`
}

func newFailure(err error) *failure {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*decoders.Error](err); ok {
		return &failure{Field: e.Field, Reason: e.Reason}
	}
	return &failure{Reason: err.Error()}
}

func (f *failure) err() error {
	if f == nil {
		return nil
	}
	return refused(f.Field, f.Reason)
}

func refused(field, reason string) error {
	return &decoders.Error{Format: "javascript", Field: field, Offset: -1, Reason: reason}
}

func newResult(res decoders.Result, err error) result {
	r := result{
		Readings: make([]reading, len(res.Readings)), Warnings: res.Warnings, Errors: res.Errors,
		Excess: res.Excess, Exceeded: res.LimitExceeded, Failure: newFailure(err),
	}
	for i, v := range res.Readings {
		r.Readings[i] = reading{Key: v.Key, Value: v.Value, Time: v.Time}
		if v.IsText {
			r.Readings[i].Text = &res.Readings[i].Text
		}
	}
	return r
}

func (r result) decoded() decoders.Decoded {
	d := decoders.Decoded{Err: r.Failure.err(), Took: r.Took}
	d.Warnings, d.Errors, d.Excess, d.LimitExceeded = r.Warnings, r.Errors, r.Excess, r.Exceeded
	d.Readings = make([]decoders.Reading, len(r.Readings))
	for i, v := range r.Readings {
		d.Readings[i] = decoders.Reading{Key: v.Key, Value: v.Value, Time: v.Time}
		if v.Text != nil {
			d.Readings[i].IsText, d.Readings[i].Text = true, *v.Text
		}
	}
	return d
}

// size is about the length of the result as JSON.
func (r result) size() int {
	n := 100 + len(r.Excess)
	for _, v := range r.Readings {
		n += 40 + len(v.Key)
		if v.Text != nil {
			n += len(*v.Text)
		}
	}
	for _, text := range append(r.Warnings, r.Errors...) {
		n += len(text)
	}
	return n
}

// send writes a message behind its length.
func send(w io.Writer, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	text := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	_, err = w.Write(append(text, body...))
	return err
}

// receive reads a message of at most limit octets.
func receive(r io.Reader, message any, limit int) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if int64(n) > int64(limit) {
		return fmt.Errorf("a message of %d octets exceeds the limit of %d", n, limit)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("a message of %d octets is incomplete: %w", n, err)
	}
	return json.Unmarshal(body, message)
}
