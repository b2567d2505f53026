package client

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

const (
	progressAfter = 500 * time.Millisecond // time before progress is shown
	redrawEvery   = 200 * time.Millisecond
	progressWidth = 20 // characters of the bar
)

// clearLine is the ANSI sequence that clears a line of a terminal.
const clearLine = "\r\x1b[K"

// Progress shows the progress of an operation on a line of a terminal. A nil *Progress shows
// nothing.
type Progress struct {
	writer      io.Writer
	label       string
	began       time.Time
	done, total atomic.Int64 // total is 0 if unknown
	unit        func(n int64) string
	quit        chan struct{}
	ended       sync.WaitGroup
	drawMu      sync.Mutex
}

// NewProgress shows progress on standard error, or returns nil if standard error is not a terminal.
// unit formats the numbers.
func NewProgress(env Environment, label string, unit func(n int64) string) *Progress {
	f, ok := env.Stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	p := &Progress{writer: f, label: label, began: time.Now(), unit: unit, quit: make(chan struct{})}
	p.ended.Go(p.run)
	return p
}

func (p *Progress) run() {
	wait := progressAfter
	for {
		timer := time.NewTimer(wait)
		select {
		case <-p.quit:
			timer.Stop()
			return
		case <-timer.C:
			p.drawMu.Lock()
			_, _ = fmt.Fprint(p.writer, clearLine+p.line())
			p.drawMu.Unlock()
		}
		wait = redrawEvery
	}
}

func (p *Progress) line() string {
	done, total := p.done.Load(), p.total.Load()
	line := p.label
	if total > 0 {
		full := int(progressWidth * min(done, total) / total)
		line += " [" + strings.Repeat("#", full) + strings.Repeat(".", progressWidth-full) + "] " + p.unit(done) + " of " + p.unit(total)
	} else if done > 0 {
		line += ", " + p.unit(done)
	}
	return line + ", " + time.Since(p.began).Truncate(time.Second).String()
}

// Expect sets the total.
func (p *Progress) Expect(total int64) {
	if p != nil {
		p.total.Store(total)
	}
}

// Add adds n to the completed amount.
func (p *Progress) Add(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

// End clears the line.
func (p *Progress) End() {
	if p == nil {
		return
	}
	close(p.quit)
	p.ended.Wait()
	if time.Since(p.began) >= progressAfter {
		_, _ = fmt.Fprint(p.writer, clearLine)
	}
}

// ResultWriter returns a writer for results on the same terminal. The writer clears the line of the progress
// before each write.
func (p *Progress) ResultWriter(writer io.Writer) io.Writer {
	if p == nil {
		return writer
	}
	return resultWriter{writer, p}
}

type resultWriter struct {
	io.Writer
	progress *Progress
}

// Write implements io.Writer.
func (r resultWriter) Write(b []byte) (int, error) {
	r.progress.drawMu.Lock()
	defer r.progress.drawMu.Unlock()
	_, _ = fmt.Fprint(r.progress.writer, clearLine)
	return r.Writer.Write(b)
}

// reader returns a reader that adds the bytes read from r.
func (p *Progress) reader(r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	return countingReader{r, p}
}

type countingReader struct {
	io.Reader
	progress *Progress
}

// Read implements io.Reader.
func (c countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.progress.Add(int64(n))
	return n, err
}

// kilobytes formats a number of bytes.
func kilobytes(n int64) string { return fmt.Sprintf("%d kB", (n+999)/1000) }
