package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"sync"
)

// maxRead is the size in bytes of the payloads after which Next returns.
const maxRead = 4 << 20

// Consumer reads the records of a log after its checkpoint at least once: records that were
// returned but not committed are returned again after a restart or a Rewind.
type Consumer struct {
	log  *Log
	name string
	open bool // guarded by Log.state; false if only the checkpoint was loaded

	reading sync.Mutex // serializes Next
	cur     cursor

	mu         sync.Mutex
	pos        uint64 // the next sequence to return
	checkpoint checkpoint
}

func newConsumer(l *Log, name string, f file, gen, seq uint64) *Consumer {
	c := &Consumer{log: l, name: name, pos: seq + 1, checkpoint: checkpoint{f: f, gen: gen}, cur: cursor{log: l}}
	c.checkpoint.seq.Store(seq)
	return c
}

// Consumer opens the consumer with a name. A consumer can be open only once. A new
// consumer starts at the oldest record. Its checkpoint is the file NAME.checkpoint; to remove
// a consumer, delete the file while the log is closed.
func (l *Log) Consumer(name string) (*Consumer, error) {
	if ok, _ := regexp.MatchString(`^[a-z0-9][a-z0-9_-]{0,63}$`, name); !ok {
		return nil, fmt.Errorf("journal: consumer name %q: must be 1 to 64 characters of a-z, 0-9, _ and -, beginning with a letter or digit", name)
	}
	l.state.Lock()
	defer l.state.Unlock()
	select {
	case <-l.quit:
		return nil, fmt.Errorf("journal: consumer %s: %w", name, ErrClosed)
	default:
	}
	c := l.consumers[name]
	if c == nil {
		f, err := createCheckpoint(filepath.Join(l.dir, name+checkpointSuffix), l.opts.disk)
		if err != nil {
			return nil, fmt.Errorf("journal: create checkpoint: %w", err)
		}
		c = newConsumer(l, name, f, 0, 0)
		l.consumers[name] = c
	}
	if c.open {
		return nil, fmt.Errorf("journal: consumer %s is already open", name)
	}
	c.open = true
	return c, nil
}

// Next waits for a durable record, and returns it with the durable records that follow: at
// most limit records and about 4 MiB. It returns ctx.Err(), ErrClosed or a disk error.
func (c *Consumer) Next(ctx context.Context, limit int) ([]Record, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for {
		pos := c.position()
		if err := c.log.await(ctx, pos); err != nil {
			return nil, fmt.Errorf("journal: consumer %s: %w", c.name, err)
		}
		c.cur.moveTo(pos)
		records, err := c.read(max(limit, 1))
		if err != nil {
			c.cur.close()
			return nil, err
		}
		c.mu.Lock()
		rewound := c.pos != pos
		if !rewound {
			c.pos = c.cur.seq
		}
		c.mu.Unlock()
		if rewound {
			continue
		}
		if len(records) > 0 {
			return records, nil
		}
	}
}

// read returns records from the cursor's position. If all durable records after the position
// are damaged, read returns none and moves the cursor past them.
func (c *Consumer) read(limit int) ([]Record, error) {
	lastSeq := c.log.lastDurable()
	var records []Record
	for bytes := 0; len(records) < limit && bytes < maxRead; {
		rec, err := c.cur.readNext()
		if errors.Is(err, io.EOF) {
			if len(records) == 0 {
				c.cur.moveTo(lastSeq + 1)
			}
			break
		}
		if err != nil {
			return records, err
		}
		bytes += len(rec.Payload)
		records = append(records, rec)
	}
	return records, nil
}

func (c *Consumer) position() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pos
}

// Commit records that all records up to and including seq are processed. A seq below the
// checkpoint changes nothing. The checkpoint survives the end of the process immediately,
// and a power failure after about a minute or Close.
func (c *Consumer) Commit(seq uint64) error {
	if lastSeq := c.log.lastDurable(); seq > lastSeq {
		return fmt.Errorf("journal: consumer %s: commit %d: the last record is %d", c.name, seq, lastSeq)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if seq <= c.Committed() {
		return nil
	}
	if err := c.checkpoint.store(seq); err != nil {
		return fmt.Errorf("journal: consumer %s: write checkpoint: %w", c.name, err)
	}
	c.pos = max(c.pos, seq+1)
	return nil
}

// Committed returns the checkpoint: the last committed sequence, or 0.
func (c *Consumer) Committed() uint64 { return c.checkpoint.seq.Load() }

// Rewind moves the read position back to the checkpoint, so that Next returns records that
// are not committed again.
func (c *Consumer) Rewind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pos = c.Committed() + 1
}

// Revert moves the checkpoint back to seq, so that later records are processed again. The
// checkpoint is on disk when Revert returns nil. A seq at or above the checkpoint changes
// nothing.
func (c *Consumer) Revert(seq uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seq >= c.Committed() {
		return nil
	}
	if err := errors.Join(c.checkpoint.store(seq), c.checkpoint.sync()); err != nil {
		return fmt.Errorf("journal: consumer %s: revert checkpoint: %w", c.name, err)
	}
	c.pos = seq + 1
	return nil
}

func (c *Consumer) sync() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.checkpoint.sync()
}

// await returns when a record with sequence seq or a later one is durable.
func (l *Log) await(ctx context.Context, seq uint64) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		select {
		case <-l.quit:
			return ErrClosed
		default:
		}
		l.state.Lock()
		if l.durableSeq >= seq {
			l.state.Unlock()
			return nil
		}
		if l.growth == nil {
			l.growth = make(chan struct{})
		}
		growth := l.growth // closed when another record is durable
		l.state.Unlock()
		select {
		case <-growth:
		case <-ctx.Done():
		case <-l.quit:
		}
	}
}
