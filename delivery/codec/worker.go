package codec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/script/javascript"
)

// WorkerCommand is the undocumented command of the program that runs Work.
const WorkerCommand = "codec-worker"

const (
	// callLimit is the CPU time after which a call is interrupted. After twice that time the
	// process exits, because a built-in function does not notice the interruption.
	callLimit = 100 * time.Millisecond
	// compileLimit is the CPU time for parsing and compiling a source, after which the process
	// exits, because compiling cannot be interrupted.
	compileLimit = 2 * time.Second
	// requestTime is the time after which a worker responds and leaves the remaining frames to
	// another request, so that a request takes less than callTime even on a busy machine.
	requestTime = 5 * time.Second
	// memoryLimit bounds the memory that the Go runtime holds.
	memoryLimit = 160 << 20
	// dataLimit is the largest growth of the data segment (RLIMIT_DATA).
	dataLimit = 192 << 20
	// maxSources is the largest total size, in octets, of the sources whose compiled codecs a worker stores.
	maxSources = 2 << 20
	// watchEvery is the interval at which the limits are checked while a request is served.
	watchEvery = 5 * time.Millisecond
)

// Exit codes of a worker that exceeds a limit.
const (
	exitTime    = 71
	exitMemory  = 72
	exitCompile = 73
)

// worker is the state of a worker process.
type worker struct {
	codecs      map[string]*javascript.Codec // by the hash of the source
	sourceSize  int                          // of the sources of codecs, in octets
	interrupter javascript.Interrupter

	mu sync.Mutex
	// limit is the limit of the call in progress, or 0 if there is none. began is the CPU time
	// at the start of the call.
	limit, began time.Duration
	interrupted  bool // a call of this process was interrupted
}

// Work serves requests from a parent process until requests ends. It returns an error if a
// request cannot be read or a response cannot be written.
func Work(requests io.Reader, responses io.Writer) error {
	if err := limitProcess(dataLimit); err != nil {
		fmt.Fprintln(os.Stderr, "codec-worker: limits:", err)
	}
	w := &worker{codecs: make(map[string]*javascript.Codec)}
	checks := time.NewTicker(watchEvery)
	go w.watch(checks.C)
	for {
		checks.Stop() // an idle worker does nothing
		var req request
		err := receive(requests, &req, maxRequest)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		checks.Reset(watchEvery)
		resp := w.serve(req)
		if err := send(responses, resp); err != nil || resp.Exits {
			return err
		}
		if heldMemory() > memoryLimit/3 { // this garbage must not count against the limit of the next codec
			debug.FreeOSMemory()
		}
	}
}

// heldMemory returns the size of the memory that the Go runtime holds, in octets.
func heldMemory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// watch checks the limits at each tick. It interrupts a call at its limit. It exits the process
// if the call does not end then, or if the process holds too much memory.
func (w *worker) watch(checks <-chan time.Time) {
	for range checks {
		if heldMemory() > memoryLimit {
			os.Exit(exitMemory)
		}
		w.mu.Lock()
		if used := cpuTime() - w.began; w.limit > 0 && used > w.limit {
			switch {
			case w.limit == compileLimit:
				os.Exit(exitCompile)
			case used > 2*w.limit:
				os.Exit(exitTime)
			}
			w.interrupted = w.interrupter.Interrupt(timeExceeded) || w.interrupted
		}
		w.mu.Unlock()
	}
}

// The errors of a call that exceeds callLimit and of a source that exceeds compileLimit.
const (
	timeExceeded        = "the codec did not end within 100 ms"
	compileTimeExceeded = "the source was not compiled within 2 s"
)

// runLimited runs a call with a limit of CPU time and returns its CPU time. The lock prevents
// watch from interrupting the next call instead.
func (w *worker) runLimited(limit time.Duration, call func()) time.Duration {
	began := cpuTime()
	w.mu.Lock()
	w.limit, w.began = limit, began
	w.mu.Unlock()
	call()
	w.mu.Lock()
	w.limit = 0
	w.mu.Unlock()
	return cpuTime() - began
}

// serve runs the codec on the frames of a request in order, until its budget or requestTime
// is used, the results are large, or a call was interrupted.
func (w *worker) serve(req request) (resp response) {
	began := time.Now()
	codec := w.codecs[req.Hash]
	if codec == nil {
		if req.Source == "" {
			return response{NeedsSource: true}
		}
		var err error
		resp.CompileTime = w.runLimited(compileLimit, func() { codec, err = javascript.Compile(req.Source) })
		if err == nil && len(req.Frames) == 0 {
			w.runLimited(callLimit, func() { err = codec.Check(&w.interrupter) })
		}
		if err != nil {
			resp.Invalid, resp.Exits = newFailure(err), w.interrupted
			return resp
		}
		if w.sourceSize += len(req.Source); w.sourceSize > maxSources {
			clear(w.codecs)
			w.sourceSize = len(req.Source)
		}
		w.codecs[req.Hash] = codec
	}
	resp.Results = make([]result, 0, len(req.Frames))
	used, size := resp.CompileTime, 0
	for i, f := range req.Frames {
		if i > 0 && (req.Budget > 0 && used >= req.Budget || size > maxResults || w.interrupted || time.Since(began) > requestTime) {
			break
		}
		var r result
		cpu := w.runLimited(callLimit, func() {
			res, err := codec.DecodeUntil(&decoders.Frame{
				Payload: f.Payload, FPort: f.FPort, FCnt: f.FCnt, Identifier: f.Identifier, Name: f.Name,
				Params: f.Params, NetworkTime: f.NetworkTime, SampleTime: f.SampleTime,
			}, &w.interrupter)
			r = newResult(res, err)
		})
		r.CPUTime = cpu
		used += cpu
		size += r.size()
		resp.Results = append(resp.Results, r)
	}
	resp.Exits = w.interrupted
	return resp
}
