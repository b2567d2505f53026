package codec

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// callTime is the wall-clock time after which the worker is killed during a request. It
	// must suffice for one call on a busy machine, because a worker starts no call later than
	// requestTime.
	callTime = 30 * time.Second
	// maxKnown is the number of hashes in process.known, after which known is cleared.
	maxKnown = 1000
	// maxStderr is the number of bytes of a worker's standard error that are stored.
	maxStderr = 4 << 10
)

// process is a running worker, seen from the parent.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr prefixBuffer
	known  map[string]bool // hashes of the sources that the worker has received
}

// startProcess starts a worker without environment variables and with no file descriptors
// except its three pipes.
func startProcess(program string) (*process, error) {
	p := &process{cmd: exec.CommandContext(context.Background(), program, WorkerCommand), known: make(map[string]bool)}
	p.cmd.Env = []string{}
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.stdout = stdin, bufio.NewReader(stdout)
	return p, p.cmd.Start()
}

// endedError is returned for a request during which the worker ended.
type endedError struct {
	reason   string
	exceeded bool // the codec exceeded a limit
}

func (e *endedError) Error() string { return e.reason }

// call sends a request and reads the response. It sends the source if the worker does not
// have it. After an error the process has ended.
func (p *process) call(ctx context.Context, req request, source string) (resp response, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	defer stop()
	if !p.known[req.Hash] {
		req.Source = source
	}
	if resp, err = p.exchange(req); err == nil && resp.NeedsSource {
		req.Source = source
		resp, err = p.exchange(req)
	}
	switch {
	case err == nil:
		if len(p.known) >= maxKnown {
			clear(p.known)
		}
		p.known[req.Hash] = true
		resp.Exits = resp.Exits || !stop() // killed after its response
		return resp, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		p.end()
		return resp, &endedError{fmt.Sprintf("the codec did not end within %s", callTime), true}
	case ctx.Err() != nil:
		p.end()
		return resp, ctx.Err()
	}
	return resp, p.endReason(err)
}

func (p *process) exchange(req request) (resp response, err error) {
	if err := send(p.stdin, req); err != nil {
		return resp, err
	}
	return resp, receive(p.stdout, &resp, maxResponse)
}

// endReason ends the process and returns the reason of its end as an *endedError.
func (p *process) endReason(err error) error {
	state, stderr := p.end(), p.stderr.String()
	// The texts of the Go runtime and of the race detector for a failed allocation.
	lacksMemory := slices.ContainsFunc([]string{"out of memory", "cannot allocate memory", "failed to allocate"}, func(text string) bool {
		return strings.Contains(stderr, text)
	})
	switch code := p.cmd.ProcessState.ExitCode(); {
	case code == exitTime:
		return &endedError{timeExceeded, true}
	case code == exitCompile:
		return &endedError{compileTimeExceeded, true}
	case code == exitMemory || lacksMemory:
		return &endedError{fmt.Sprintf("the codec used more than %d MiB of memory", memoryLimit>>20), true}
	case strings.Contains(stderr, "stack exceeds"):
		return &endedError{"the codec's code or values are nested too deep", true}
	}
	line, _, _ := strings.Cut(stderr, "\n")
	return &endedError{reason: strings.TrimSpace(fmt.Sprintf("the codec worker failed: %v (%s) %s", err, state, line))}
}

// end kills the process, waits until it has ended and returns its state.
func (p *process) end() string {
	_ = p.stdin.Close()
	_ = p.cmd.Process.Kill() // does nothing if the process has exited
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.String()
}

// prefixBuffer stores the beginning of the data written to it: the first line of a Go program's
// standard error is the reason of a crash. It is safe for concurrent use.
type prefixBuffer struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (p *prefixBuffer) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = append(p.text, data[:min(len(data), maxStderr-len(p.text))]...)
	return len(data), nil
}

func (p *prefixBuffer) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.text)
}
