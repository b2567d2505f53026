// Package checkpoints stores the signed heads of ledgers outside the record
// store: in a journal in the data directory, which is synced before a head
// counts as stored, and, if a directory is configured, published as files.
//
// A head is a checkpoint in the format of C2SP tlog-checkpoint. A web server
// over the directory serves the checkpoint of each ledger's log as in C2SP tlog-tiles:
// <hash>/checkpoint, for auditors who compare heads. Witnesses do not fetch it: in C2SP
// tlog-witness the log posts add-checkpoint to the witness, which Penstock does not do.
package checkpoints

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/penstock/penstock/delivery/durable"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/ledger/merkle"
)

// Journal stores the last head of each ledger. It is safe for concurrent use within
// one process.
type Journal struct {
	path       string
	publishDir string // empty disables publishing

	mu           sync.Mutex
	file         *os.File
	heads        map[ledger.Place]string
	lines        int  // number of lines in the file
	needsRewrite bool // the file is not open, or its last line may be incomplete
}

var _ ledger.Heads = (*Journal)(nil)

// entry is a line of the journal. The last line of a ledger contains its head. A line without a
// checkpoint removes the head of the ledger.
type entry struct {
	Account    relay.AccountID `json:"account"`
	Ledger     string          `json:"ledger"`
	Checkpoint string          `json:"checkpoint"`
}

// Open reads the journal and publishes its heads in a directory, unless publishDir is empty.
// The first Keep creates the file.
func Open(path, publishDir string) (*Journal, error) {
	heads, err := Read(path)
	if err != nil {
		return nil, err
	}
	// The first Keep opens the file. A second process, which is refused later, must not open
	// the file.
	j := &Journal{path: path, publishDir: publishDir, heads: heads, needsRewrite: true}
	for _, signed := range heads { // publishDir may be new
		if err := j.publish(signed); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// Read returns the last head of each ledger in a journal. A gateway may write to the journal
// meanwhile, because Read ignores an incomplete last line.
func Read(path string) (map[ledger.Place]string, error) {
	heads := make(map[ledger.Place]string)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return heads, nil
	}
	if err != nil {
		return nil, fmt.Errorf("heads of ledgers: %w", err)
	}
	complete := text[:bytes.LastIndexByte(text, '\n')+1]
	lines := bufio.NewScanner(bytes.NewReader(complete))
	for n := 1; lines.Scan(); n++ {
		var l entry
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("heads of ledgers: %s: line %d: %w", path, n, err)
		}
		setLast(heads, ledger.Place{Account: l.Account, Ledger: l.Ledger}, l.Checkpoint)
	}
	return heads, lines.Err()
}

func setLast(heads map[ledger.Place]string, p ledger.Place, signed string) {
	heads[p] = signed
	if signed == "" {
		delete(heads, p)
	}
}

// Last returns the last head of a ledger, or an empty string.
func (j *Journal) Last(p ledger.Place) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.heads[p]
}

// All returns the last head of every ledger.
func (j *Journal) All() map[ledger.Place]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.heads)
}

// Keep publishes a head and appends it to the journal. The head is on disk when
// Keep returns nil.
func (j *Journal) Keep(p ledger.Place, signed string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.publish(signed); err != nil {
		return err
	}
	if j.needsRewrite || j.lines > 1000 && j.lines > 2*len(j.heads) {
		if err := j.rewrite(); err != nil {
			return err
		}
	}
	b, err := encode(p, signed)
	if err != nil {
		return err
	}
	if _, err = j.file.Write(b); err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.needsRewrite = true
		return fmt.Errorf("heads of ledgers: %w", err)
	}
	j.lines++
	setLast(j.heads, p, signed)
	return nil
}

func encode(p ledger.Place, signed string) ([]byte, error) {
	b, err := json.Marshal(entry{p.Account, p.Ledger, signed})
	return append(b, '\n'), err
}

func (j *Journal) rewrite() error {
	var text []byte
	for p, signed := range j.heads {
		b, err := encode(p, signed)
		if err != nil {
			return err
		}
		text = append(text, b...)
	}
	if err := durable.WriteFile(j.path, text, 0o600); err != nil {
		return fmt.Errorf("heads of ledgers: %w", err)
	}
	file, err := os.OpenFile(j.path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("heads of ledgers: %w", err)
	}
	if j.file != nil {
		_ = j.file.Close()
	}
	j.file, j.lines, j.needsRewrite = file, len(j.heads), false
	return nil
}

func (j *Journal) publish(signed string) error {
	if j.publishDir == "" || signed == "" {
		return nil
	}
	origin, _, _ := strings.Cut(signed, "\n")
	name := strings.TrimPrefix(origin, merkle.Origin(""))
	if b, err := hex.DecodeString(name); err != nil || len(b) != 32 {
		return fmt.Errorf("heads of ledgers: %q does not name a ledger's hash", origin)
	}
	dir := filepath.Join(j.publishDir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("heads of ledgers: publish: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(dir, "checkpoint"), []byte(signed), 0o644); err != nil {
		return fmt.Errorf("heads of ledgers: publish: %w", err)
	}
	return nil
}

// Close closes the journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
