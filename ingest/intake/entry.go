package intake

import (
	"encoding/binary"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/tracing"
)

// entryVersion is the first byte of every record. Other versions are refused.
const entryVersion = 1

// Entry is an accepted request with everything that processing and replaying it need. It
// never includes credentials.
type Entry struct {
	// Account is the account of the request's token; 0 for carriers in the
	// configuration file.
	Account relay.AccountID
	// Source is the adapter or the sender, if known: kannel, json, chirpstack-v4.
	Source      string
	Path        string
	Query       string // raw
	ContentType string
	// Waiter is the id of the request that waits for the outcome; empty if there is none.
	Waiter  string
	Headers map[string]string
	Body    []byte
	// Trace is the span in which the entry was journalled; empty for none. Trace is encoded
	// as a header, which gateways without tracing ignore.
	Trace tracing.Parent
	// ReceivedAt is the time at which the journal accepted the entry. Append does not encode
	// ReceivedAt.
	ReceivedAt time.Time
}

// Append appends the entry's encoding to dst.
func (e *Entry) Append(dst []byte) []byte {
	dst = append(dst, entryVersion)
	dst = binary.AppendVarint(dst, int64(e.Account))
	for _, s := range [...]string{e.Source, e.Path, e.Query, e.ContentType, e.Waiter} {
		dst = appendString(dst, s)
	}
	headers := len(e.Headers)
	if e.Trace != "" {
		headers++
	}
	dst = binary.AppendUvarint(dst, uint64(headers))
	if e.Trace != "" {
		dst = appendString(appendString(dst, tracing.Header), string(e.Trace))
	}
	for k, v := range e.Headers {
		dst = appendString(appendString(dst, k), v)
	}
	return append(dst, e.Body...)
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// parseEntry decodes an entry encoded by Append. The body shares memory with b. Strings that
// equal those of the previous entry share their memory, because most entries of a batch
// come from few senders.
func parseEntry(b []byte, previous *Entry) (Entry, error) {
	r := reader{data: b, remaining: b}
	if v := r.byte("version"); v != entryVersion && r.err == nil {
		r.fail("version", "unknown version")
	}
	account, n := binary.Varint(r.remaining)
	r.skip("account", n)
	e := Entry{Account: relay.AccountID(account)}
	e.Source, e.Path = r.string("source", previous.Source), r.string("path", previous.Path)
	e.Query, e.ContentType = r.string("query", previous.Query), r.string("content_type", previous.ContentType)
	e.Waiter = r.string("waiter", "")
	for n := r.uvarint("headers"); n > 0 && r.err == nil; n-- {
		key, value := r.string("header", tracing.Header), r.string("header value", "")
		if key == tracing.Header {
			e.Trace = tracing.Parent(value)
			continue
		}
		if e.Headers == nil {
			e.Headers = make(map[string]string)
		}
		e.Headers[key] = value
	}
	e.Body = r.remaining
	if r.err != nil {
		return Entry{}, r.err
	}
	return e, nil
}

// reader reads the fields of an entry and records the first error.
type reader struct {
	data, remaining []byte
	err             error
}

func (r *reader) fail(field, reason string) {
	if r.err == nil {
		r.err = &decoders.Error{Format: "entry", Field: field, Offset: len(r.data) - len(r.remaining), Reason: reason}
	}
	r.remaining = nil
}

func (r *reader) byte(field string) byte {
	if len(r.remaining) == 0 {
		r.fail(field, "truncated")
		return 0
	}
	b := r.remaining[0]
	r.remaining = r.remaining[1:]
	return b
}

func (r *reader) uvarint(field string) uint64 {
	v, n := binary.Uvarint(r.remaining)
	r.skip(field, n)
	return v
}

func (r *reader) skip(field string, n int) {
	if n <= 0 {
		r.fail(field, "invalid varint")
		return
	}
	r.remaining = r.remaining[n:]
}

// string reads a string. If the string equals known, string returns known without allocating.
func (r *reader) string(field, known string) string {
	n := r.uvarint(field)
	if n > uint64(len(r.remaining)) {
		r.fail(field, "truncated")
		return ""
	}
	b := r.remaining[:n]
	r.remaining = r.remaining[n:]
	if string(b) == known {
		return known
	}
	return string(b)
}
