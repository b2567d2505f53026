package codec

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// maxWorkers is the largest number of workers of a pool.
const maxWorkers = 2

// maxDeaths is the number of times that a worker may be killed from outside while it runs the
// same frame. Then the frame is refused.
const maxDeaths = 3

// deathTime is the CPU time that is assumed for a frame that ended its worker.
const deathTime = 2 * callLimit

// Pool runs codecs in workers, which it starts on demand. It is safe for concurrent use.
type Pool struct {
	log     *slog.Logger
	program string

	mu      sync.Mutex
	free    int            // number of workers that may be acquired
	idle    []*process     // the running workers among the free ones
	busy    map[int64]bool // owners that have a worker
	waiting []*waiter      // in the order of their arrival
	closed  bool
}

// waiter is a caller that waits for a worker; ready is closed when it has acquired one.
type waiter struct {
	owner int64
	ready chan struct{}
}

// New returns a pool of at most two workers.
func New(log *slog.Logger) *Pool {
	return &Pool{log: log, program: programPath(), free: min(maxWorkers, runtime.GOMAXPROCS(0)), busy: make(map[int64]bool)}
}

// programPath returns the path of the running program, even if its file was replaced.
func programPath() string {
	const link = "/proc/self/exe"
	if _, err := os.Stat(link); err == nil {
		return link
	}
	name, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return name
}

// Close ends the workers. Later calls fail.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, worker := range idle {
		worker.end()
	}
	return nil
}

// acquire waits until a worker is free and the owner has no other worker. The worker is nil if
// the caller has to start one. The caller must call release.
func (p *Pool) acquire(ctx context.Context, owner int64) (*process, error) {
	p.mu.Lock()
	if p.free == 0 || p.busy[owner] {
		w := &waiter{owner, make(chan struct{})}
		p.waiting = append(p.waiting, w)
		p.mu.Unlock()
		select {
		case <-w.ready:
		case <-ctx.Done():
			p.mu.Lock()
			i := slices.Index(p.waiting, w)
			if i >= 0 {
				p.waiting = slices.Delete(p.waiting, i, i+1)
			}
			p.mu.Unlock()
			if i < 0 { // the caller has acquired a worker meanwhile
				p.release(owner, nil)
			}
			return nil, ctx.Err()
		}
		p.mu.Lock()
	} else {
		p.free--
		p.busy[owner] = true
	}
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		worker := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return worker, nil
	}
	return nil, nil
}

// release returns a worker to the pool, or the permit for one if worker is nil. The first
// waiting callers whose owners have no worker acquire it.
func (p *Pool) release(owner int64, worker *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if worker != nil && p.closed {
		worker.end()
	} else if worker != nil {
		p.idle = append(p.idle, worker)
	}
	p.free++
	delete(p.busy, owner)
	for i := 0; i < len(p.waiting) && p.free > 0; {
		w := p.waiting[i]
		if p.busy[w.owner] {
			i++
			continue
		}
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.free--
		p.busy[w.owner] = true
		close(w.ready)
	}
}

// call sends a request to a worker. The error is an *endedError if the worker ended during the
// request. Other errors mean that the request was not run or that ctx ended.
func (p *Pool) call(ctx context.Context, owner int64, req request, source string) (resp response, err error) {
	worker, err := p.acquire(ctx, owner)
	if err != nil {
		return resp, err
	}
	defer func() { p.release(owner, worker) }()
	if worker == nil {
		p.mu.Lock()
		closed := p.closed
		p.mu.Unlock()
		if closed {
			return resp, relay.Errorf(relay.KindUnavailable, "codec workers: the gateway is stopping")
		}
		if worker, err = startProcess(p.program); err != nil {
			worker = nil
			return resp, relay.Errorf(relay.KindUnavailable, "codec worker: start: %w", err)
		}
	}
	if resp, err = worker.call(ctx, req, source); err != nil || resp.Exits {
		if err == nil {
			worker.end()
		} else if ended, ok := errors.AsType[*endedError](err); ok && !ended.exceeded {
			p.log.Error("codec worker ended unexpectedly", "error", err)
		}
		worker = nil
	}
	return resp, err
}

// Compile checks a source in a worker, running its top level once, and returns its
// decoder. It returns an Unavailable error if no worker could run it.
func (p *Pool) Compile(source string) (decoders.Decoder, error) {
	sum := sha256.Sum256([]byte(source))
	d := &decoder{call: p.call, source: source, hash: hex.EncodeToString(sum[:])}
	for deaths := 1; ; deaths++ {
		resp, err := p.call(context.Background(), 0, request{Hash: d.hash}, source)
		ended, isEnded := errors.AsType[*endedError](err)
		switch {
		case isEnded && ended.exceeded:
			return nil, newError("", ended.reason)
		case isEnded && deaths < maxDeaths: // killed from outside: retry
		case isEnded:
			return nil, relay.Errorf(relay.KindUnavailable, "%s", ended.reason)
		case err != nil:
			return nil, err
		case resp.Invalid != nil:
			return nil, newError(resp.Invalid.Field, resp.Invalid.Reason)
		default:
			return d, nil
		}
	}
}

// decoder runs one source in the workers of a pool.
type decoder struct {
	call         func(ctx context.Context, owner int64, req request, source string) (response, error)
	source, hash string
}

// Decode implements decoders.Decoder.
func (d *decoder) Decode(f *decoders.Frame) (decoders.Result, error) {
	decoded, err := d.DecodeBatch(context.Background(), 0, []*decoders.Frame{f}, 0)
	if err != nil {
		return decoders.Result{}, err
	}
	return decoded[0].Result, decoded[0].Err
}

// DecodeBatch implements decoders.BatchDecoder.
func (d *decoder) DecodeBatch(ctx context.Context, owner int64, frames []*decoders.Frame, budget time.Duration) ([]decoders.Decoded, error) {
	results := make([]decoders.Decoded, len(frames))
	var used time.Duration
	size, deaths := len(frames), 0 // size is the number of frames of a request
	for start := 0; start < len(frames); {
		if budget > 0 && used >= budget {
			for i := start; i < len(frames); i++ {
				results[i].Skipped = true
			}
			break
		}
		if frames[start].Encrypted {
			results[start].Err = newError("payload", "is encrypted")
			start++
			continue
		}
		// 1. Send the frames before the next encrypted one.
		req := request{Hash: d.hash, Budget: max(budget-used, 0)}
		for _, f := range frames[start:min(start+size, len(frames))] {
			if f.Encrypted {
				break
			}
			req.Frames = append(req.Frames, frame{
				Payload: f.Payload, FPort: f.FPort, FCnt: f.FCnt, Identifier: f.Identifier, Name: f.Name,
				Params: f.Params, NetworkTime: f.NetworkTime, SampleTime: f.SampleTime,
			})
		}
		resp, err := d.call(ctx, owner, req, d.source)
		// 2. If the worker ended, send the frames one by one to find the one that ends it. If
		// the worker was killed from outside, retry the frame up to maxDeaths times.
		if ended, ok := errors.AsType[*endedError](err); ok {
			if deaths++; len(req.Frames) > 1 {
				size, deaths = 1, 0 // doubled after each response
			} else if ended.exceeded || deaths == maxDeaths {
				results[start] = decoders.Decoded{Result: decoders.Result{LimitExceeded: true}, Err: newError("", ended.reason), CPUTime: deathTime}
				used, deaths = used+deathTime, 0
				start++
			}
			continue
		}
		// 3. Record the results. The time of the first result includes compiling the source.
		compiled := min(max(resp.CompileTime, 0), callTime)
		switch {
		case err != nil:
			return nil, err
		case resp.Invalid != nil: // although it was valid when it was saved
			results[start] = decoders.Decoded{Err: newError(resp.Invalid.Field, resp.Invalid.Reason), CPUTime: compiled}
			used += compiled
			start++
		case len(resp.Results) == 0 || len(resp.Results) > len(req.Frames):
			return nil, relay.Errorf(relay.KindUnavailable, "codec worker: %d results for %d frames", len(resp.Results), len(req.Frames))
		}
		size, deaths = min(2*size, len(frames)), 0
		for i, r := range resp.Results {
			r.CPUTime = min(max(r.CPUTime, 0), callTime)
			if i == 0 {
				r.CPUTime += compiled
			}
			results[start] = r.decoded()
			used += r.CPUTime
			start++
		}
	}
	return results, nil
}
