package journal

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

var errDisk = errors.New("input/output error")

// During any fault an append fails. After the fault the log accepts records, and has exactly the
// acknowledged records, including after a restart.
func TestFaultsLoseNoAcknowledgedRecord(t *testing.T) {
	for name, c := range map[string]struct {
		fault   func(*faultyDisk)
		wantErr error
		nextSeq uint64 // 5 if record 4 may have reached the disk
	}{
		"a write fails":                              {func(d *faultyDisk) { d.writeErr = errDisk }, errDisk, 4},
		"a partial write":                            {func(d *faultyDisk) { d.writeErr, d.partial = errDisk, 60 }, errDisk, 4},
		"a write fails after all bytes":              {func(d *faultyDisk) { d.writeErr, d.partial = errDisk, 1<<20 }, errDisk, 4},
		"a write and its truncation fail":            {func(d *faultyDisk) { d.writeErr, d.truncateErr, d.partial = errDisk, errDisk, 1<<20 }, errDisk, 5},
		"a sync fails":                               {func(d *faultyDisk) { d.syncErr = errDisk }, errDisk, 5},
		"a sync and the creation of a segment fail":  {func(d *faultyDisk) { d.syncErr, d.createErr = errDisk, errDisk }, errDisk, 5},
		"a sync of a file and of the directory fail": {func(d *faultyDisk) { d.syncErr, d.syncDirErr = errDisk, errDisk }, errDisk, 5},
		"the disk is full":                           {func(d *faultyDisk) { d.writeErr, d.partial = syscall.ENOSPC, 60 }, ErrFull, 4},
		"the disk quota is full":                     {func(d *faultyDisk) { d.writeErr, d.partial = syscall.EDQUOT, 60 }, ErrFull, 4},
		"the disk is full during a sync":             {func(d *faultyDisk) { d.syncErr = syscall.ENOSPC }, ErrFull, 5},
	} {
		t.Run(name, func(t *testing.T) {
			dir, d := t.TempDir(), &faultyDisk{}
			l := mustOpen(t, dir, Options{disk: d})
			reader := mustConsumer(t, l, "c")
			stored := fill(t, l, 3)
			d.set(c.fault)
			_, err := l.Append(t.Context(), []byte("refused"))
			wantErr(t, err, c.wantErr)
			if d.syncErr != nil && d.createErr != nil || d.syncDirErr != nil {
				_, err := l.Append(t.Context(), []byte("refused too"))
				wantErr(t, err, errDisk)
			}
			st := l.Stats()
			if st.Err == nil {
				t.Error("the error in the stats is nil")
			}
			if st.Failed == 0 {
				t.Error("failed records = 0, want at least 1")
			}
			wantContent(t, content(t, l), stored)
			d.set(func(d *faultyDisk) {
				d.writeErr, d.syncErr, d.truncateErr, d.createErr, d.syncDirErr = nil, nil, nil, nil, nil
			})
			seq := mustAppend(t, l, "accepted")
			stored[seq] = "accepted"
			if seq != c.nextSeq {
				t.Errorf("sequence = %d, want %d", seq, c.nextSeq)
			}
			relaytest.NoError(t, l.Stats().Err)
			wantContent(t, content(t, l), stored)
			recs, err := reader.Next(t.Context(), 100)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the number of records read", len(recs), 4)
			mustClose(t, l)
			l = mustOpen(t, dir, Options{})
			wantContent(t, content(t, l), stored)
			wantGaps(t, l)
		})
	}
}

func TestAFaultAtTheFirstRecordSkipsItsSequence(t *testing.T) {
	dir, d := t.TempDir(), &faultyDisk{}
	l := mustOpen(t, dir, Options{disk: d})
	d.set(func(d *faultyDisk) { d.syncErr = errDisk })
	_, err := l.Append(t.Context(), []byte("refused"))
	wantErr(t, err, errDisk)
	d.set(func(d *faultyDisk) { d.syncErr = nil })
	seq := mustAppend(t, l, "accepted")
	mustClose(t, l)
	l = mustOpen(t, dir, Options{})
	wantContent(t, content(t, l), map[uint64]string{seq: "accepted"})
	if seq != 2 {
		t.Errorf("sequence = %d, want 2", seq)
	}
}

func TestRecordsLostByASyncFaultAreReported(t *testing.T) {
	dir, d := t.TempDir(), &faultyDisk{}
	l := mustOpen(t, dir, Options{disk: d})
	stored := fill(t, l, 3)
	d.set(func(d *faultyDisk) { d.syncErr = errDisk })
	_, err := l.Append(t.Context(), []byte("refused"))
	wantErr(t, err, errDisk)
	editFile(t, segmentFiles(t, dir)[0], func(b []byte) []byte { b[40] ^= 1; return b })
	d.set(func(d *faultyDisk) { d.syncErr = nil })
	mustAppend(t, l, "accepted")
	wantGaps(t, l, [2]uint64{1, 1}) // before any read
	wantContent(t, content(t, l), map[uint64]string{2: stored[2], 3: stored[3], 5: "accepted"})
}

func TestOpenReturnsDiskErrors(t *testing.T) {
	for name, d := range map[string]*faultyDisk{
		"a segment cannot be created":    {createErr: errDisk},
		"the directory cannot be synced": {syncDirErr: errDisk},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.TempDir(), Options{Logger: discardLogger(), disk: d})
			wantErr(t, err, errDisk)
		})
	}
	dir := t.TempDir()
	mustClose(t, mustOpen(t, dir, Options{}))
	_, err := Open(dir, Options{Logger: discardLogger(), disk: &faultyDisk{syncErr: errDisk}})
	wantErr(t, err, errDisk)
	_, err = Open(segmentFiles(t, dir)[0], Options{})
	if pathErr := (*fs.PathError)(nil); !errors.As(err, &pathErr) {
		t.Errorf("error for a path of a file = %v, want a PathError", err)
	}
}

func TestAFailedCommitDoesNotMoveTheCheckpoint(t *testing.T) {
	d := &faultyDisk{}
	l := mustOpen(t, t.TempDir(), Options{disk: d})
	fill(t, l, 2)
	c := mustConsumer(t, l, "c")
	d.set(func(d *faultyDisk) { d.writeErr = errDisk })
	wantErr(t, c.Commit(1), errDisk)
	if c.Committed() != 0 {
		t.Errorf("checkpoint = %d, want 0", c.Committed())
	}
	d.set(func(d *faultyDisk) { d.writeErr = nil })
	relaytest.NoError(t, c.Commit(1))
	relaytest.Equal(t, "the checkpoint", c.Committed(), 1)
	d.set(func(d *faultyDisk) { d.createErr = errDisk })
	_, err := l.Consumer("d")
	wantErr(t, err, errDisk)
	d.set(func(d *faultyDisk) { d.createErr, d.syncDirErr = nil, errDisk })
	_, err = l.Consumer("d")
	wantErr(t, err, errDisk)
}
