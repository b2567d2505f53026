package netserver

import (
	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// readFrame makes the frame of a document. One that it gives no Kind is of no
// interest and is passed over.
type readFrame func(d document, f *decoders.Frame)

// oneFrame reads a body that is an object.
func oneFrame(s Sender, body []byte, read readFrame) ([]decoders.Frame, error) {
	d, err := readDocument(body)
	if err != nil {
		return nil, err
	}
	b := frames{sender: s}
	err = b.add(d, read)
	return b.list, err
}

// severalFrames reads a body that is an object and holds several messages, each
// of which becomes a frame by item.
func severalFrames(s Sender, body []byte, read func(b *frames, d document)) ([]decoders.Frame, error) {
	d, err := readDocument(body)
	if err != nil {
		return nil, err
	}
	d.notes = &notes{sender: s} // each item has its own
	b := frames{sender: s}
	read(&b, d)
	return b.list, b.err
}

// eachFrame reads every item of a list as a frame of its own, or the one object
// that stands in the list's place.
func eachFrame(s Sender, body []byte, read readFrame) ([]decoders.Frame, error) {
	d, err := readDocument(body)
	if err != nil {
		return nil, err
	}
	b := frames{sender: s}
	if d.kind() != jsonbody.Array {
		err = b.add(d, read)
		return b.list, err
	}
	d.Items(func(item document) { b.item(item, read) })
	return b.list, b.err
}

// frames are the frames that were made of one body so far.
type frames struct {
	sender Sender
	list   []decoders.Frame
	notes  notes // of the frame being made
	items  int
	err    error // the first item that could not be read
}

// add makes a frame of a document, unless it is refused.
func (b *frames) add(d document, read readFrame) error {
	b.notes = notes{sender: b.sender}
	d.notes = &b.notes
	n := len(b.list)
	b.list = append(b.list, decoders.Frame{Sender: string(b.sender)})
	f := &b.list[n]
	read(d, f)
	err := d.notes.write(f)
	if err != nil || f.Kind == "" {
		b.list = b.list[:n]
	}
	return err
}

// item is add for one of several. It keeps what can be read and reports the
// first item that cannot.
func (b *frames) item(d document, read readFrame) {
	if len(b.list) >= maxFrames {
		b.err = tooMany(string(b.sender))
		return
	}
	if err := b.add(d, read); err != nil && b.err == nil {
		b.err = inItem(b.items, err)
	}
	b.items++
}
