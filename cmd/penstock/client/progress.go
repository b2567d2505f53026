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

// progressAfter is the time after which the progress of work is shown, and redrawEvery the
// interval at which it is drawn.
const (
	progressAfter = 500 * time.Millisecond
	redrawEvery   = 200 * time.Millisecond
	progressWidth = 20 // of the bar, in characters
)

// clearLine is the sequence of ANSI that removes a line of a terminal.
const clearLine = "\r\x1b[K"

// Progress shows how far work is, on one line of a terminal. A nil *Progress shows
// nothing.
type Progress struct {
	writer      io.Writer
	label       string
	began       time.Time
	done, total atomic.Int64 // total 0: not known
	unit        func(n int64) string
	quit        chan struct{}
	ended       sync.WaitGroup
	drawing     sync.Mutex
}

// NewProgress shows progress on standard error if that is a terminal. done and total
// are written by unit.
func NewProgress(w Environment, label string, unit func(n int64) string) *Progress {
	f, ok := w.Stderr.(*os.File)
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
			p.drawing.Lock()
			_, _ = fmt.Fprint(p.writer, clearLine+p.line())
			p.drawing.Unlock()
		}
		wait = redrawEvery
	}
}

// line is the line on the screen.
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

// Expect describes how much there is to do.
func (p *Progress) Expect(total int64) {
	if p != nil {
		p.total.Store(total)
	}
}

// Add reports that n more are done.
func (p *Progress) Add(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

// End removes the line.
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

// Over returns a writer for results, which may be on the same terminal: each removes
// the line first.
func (p *Progress) Over(writer io.Writer) io.Writer {
	if p == nil {
		return writer
	}
	return resultWriter{writer, p}
}

type resultWriter struct {
	io.Writer
	over *Progress
}

// Write implements io.Writer.
func (r resultWriter) Write(b []byte) (int, error) {
	r.over.drawing.Lock()
	defer r.over.drawing.Unlock()
	_, _ = fmt.Fprint(r.over.writer, clearLine)
	return r.Writer.Write(b)
}

// reader counts what is read from r.
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

// kilobytes writes a number of bytes.
func kilobytes(n int64) string { return fmt.Sprintf("%d kB", (n+999)/1000) }
