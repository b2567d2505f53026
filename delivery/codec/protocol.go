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
	// maxRequest bounds a request: a source of 1 MiB, which may be 6 MiB as JSON, and the frames of
	// a batch.
	maxRequest = 32 << 20
	// maxResponse bounds a response: maxResults and the result of one more frame, which
	// has at most 20,000 values and 262,144 characters.
	maxResponse = 24 << 20
	// maxResults is the size of results, in octets, from which a worker responds and leaves
	// the remaining frames to another request.
	maxResults = 1 << 20
)

// request makes a worker run a codec on frames, or check the source if there are no frames.
type request struct {
	Hash   string        `json:"hash"`
	Source string        `json:"source,omitempty"`
	Frames []frame       `json:"frames,omitempty"`
	Budget time.Duration `json:"budget,omitempty"` // CPU time after which the worker starts no other frame; 0 means no limit
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

// response is the response to a request. Results has the results of the first frames; the
// worker did not run the remaining frames.
type response struct {
	NeedsSource bool `json:"unknown,omitempty"`
	// Invalid is the error of a source that cannot be used.
	Invalid *decoders.Error `json:"invalid,omitempty"`
	Results []result        `json:"results,omitempty"`
	// CompileTime is the CPU time of compiling the source; 0 if it was compiled before.
	CompileTime time.Duration `json:"compiled,omitempty"`
	// Exits is set if the worker exits after this response.
	Exits bool `json:"ends,omitempty"`
}

// result is the result of one frame. Failure replaces Err, which has no JSON form.
type result struct {
	decoders.Decoded
	Failure *decoders.Error `json:",omitempty"`
}

func newResult(res decoders.Result, err error) result {
	return result{decoders.Decoded{Result: res}, newFailure(err)}
}

// decoded returns the Decoded of a worker's result. The worker is not trusted: it sets neither
// Skipped nor the format and offset of an error.
func (r result) decoded() decoders.Decoded {
	r.Skipped = false
	if r.Failure != nil {
		r.Err = newError(r.Failure.Field, r.Failure.Reason)
	}
	return r.Decoded
}

// newFailure converts an error for a response.
func newFailure(err error) *decoders.Error {
	failure, ok := errors.AsType[*decoders.Error](err)
	if err != nil && !ok {
		return newError("", err.Error())
	}
	return failure
}

func newError(field, reason string) *decoders.Error {
	return &decoders.Error{Format: "javascript", Field: field, Offset: -1, Reason: reason}
}

// size estimates the length of the result as JSON.
func (r result) size() int {
	n := 100 + len(r.Excess)
	for _, v := range r.Readings {
		n += 40 + len(v.Key) + len(v.Text)
	}
	for _, text := range append(r.Warnings, r.Errors...) {
		n += len(text)
	}
	return n
}

// send writes the length of a message and the message.
func send(w io.Writer, content any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	message := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	_, err = w.Write(append(message, body...))
	return err
}

// receive reads a message of at most limit octets into content.
func receive(r io.Reader, content any, limit int) error {
	var prefix [4]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(prefix[:])
	if int64(n) > int64(limit) {
		return fmt.Errorf("a message of %d octets exceeds the limit of %d", n, limit)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("a message of %d octets is incomplete: %w", n, err)
	}
	return json.Unmarshal(body, content)
}
