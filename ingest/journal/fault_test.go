package journal

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

var errDisk = errors.New("input/output error")

// After any fault the append fails, the log accepts records again when the fault is over, and
// it has exactly the acknowledged records, also after a restart.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*faultyDisk)
		kind  error
		next  uint64 // the sequence of the next record: 5 if record 4 may have reached the disk
	}{
		"a write fails":                              {func(d *faultyDisk) { d.write = errDisk }, errDisk, 4},
		"a write fails half way":                     {func(d *faultyDisk) { d.write, d.partial = errDisk, 60 }, errDisk, 4},
		"a write fails after all of it":              {func(d *faultyDisk) { d.write, d.partial = errDisk, 1<<20 }, errDisk, 4},
		"a write and the cut behind it fail":         {func(d *faultyDisk) { d.write, d.trunc, d.partial = errDisk, errDisk, 1<<20 }, errDisk, 5},
		"a sync fails":                               {func(d *faultyDisk) { d.sync = errDisk }, errDisk, 5},
		"a sync fails and no segment can be made":    {func(d *faultyDisk) { d.sync, d.create = errDisk, errDisk }, errDisk, 5},
		"a sync fails and a directory is not synced": {func(d *faultyDisk) { d.sync, d.dir = errDisk, errDisk }, errDisk, 5},
		"the disk is full":                           {func(d *faultyDisk) { d.write, d.partial = syscall.ENOSPC, 60 }, ErrFull, 4},
		"the disk quota is full":                     {func(d *faultyDisk) { d.write, d.partial = syscall.EDQUOT, 60 }, ErrFull, 4},
		"the disk is full at the sync":               {func(d *faultyDisk) { d.sync = syscall.ENOSPC }, ErrFull, 5},
	} {
		t.Run(name, func(t *testing.T) {
			dir, d := t.TempDir(), &faultyDisk{}
			l := mustOpen(t, dir, Options{disk: d})
			reader := mustConsumer(t, l, "c")
			stored := fill(t, l, 3)
			d.set(c.fault)
			_, err := l.Append(t.Context(), []byte("refused"))
			wantErr(t, err, c.kind)
			if d.sync != nil && d.create != nil || d.dir != nil {
				_, err := l.Append(t.Context(), []byte("refused too"))
				wantErr(t, err, errDisk)
			}
			st := l.Stats()
			if st.Err == nil {
				t.Error("the stats have no error")
			}
			if st.Failed == 0 {
				t.Error("the stats count no refused record")
			}
			sameContent(t, content(t, l), stored)
			d.set(func(d *faultyDisk) { d.write, d.sync, d.trunc, d.create, d.dir = nil, nil, nil, nil, nil })
			seq := mustAppend(t, l, "accepted")
			stored[seq] = "accepted"
			if seq != c.next {
				t.Errorf("sequence %d, want %d", seq, c.next)
			}
			relaytest.NoError(t, l.Stats().Err)
			sameContent(t, content(t, l), stored)
			recs, err := reader.Next(t.Context(), 100)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the number of records read", len(recs), 4)
			mustClose(t, l)
			l = mustOpen(t, dir, Options{})
			sameContent(t, content(t, l), stored)
			wantGaps(t, l)
		})
	}
}

func TestAFaultAtTheVeryFirstRecord(t *testing.T) {
	dir, d := t.TempDir(), &faultyDisk{}
	l := mustOpen(t, dir, Options{disk: d})
	d.set(func(d *faultyDisk) { d.sync = errDisk })
	_, err := l.Append(t.Context(), []byte("refused"))
	wantErr(t, err, errDisk)
	d.set(func(d *faultyDisk) { d.sync = nil })
	seq := mustAppend(t, l, "accepted")
	mustClose(t, l)
	l = mustOpen(t, dir, Options{})
	sameContent(t, content(t, l), map[uint64]string{seq: "accepted"})
	if seq != 2 {
		t.Errorf("sequence %d", seq)
	}
}

func TestASyncFaultThatLostOlderRecordsIsReported(t *testing.T) {
	dir, d := t.TempDir(), &faultyDisk{}
	l := mustOpen(t, dir, Options{disk: d})
	stored := fill(t, l, 3)
	d.set(func(d *faultyDisk) { d.sync = errDisk })
	_, err := l.Append(t.Context(), []byte("refused"))
	wantErr(t, err, errDisk)
	edit(t, segmentFiles(t, dir)[0], func(b []byte) []byte { b[40] ^= 1; return b })
	d.set(func(d *faultyDisk) { d.sync = nil })
	mustAppend(t, l, "accepted")
	wantGaps(t, l, [2]uint64{1, 1}) // before anything was read
	sameContent(t, content(t, l), map[uint64]string{2: stored[2], 3: stored[3], 5: "accepted"})
}

func TestOpenReportsADiskThatRefuses(t *testing.T) {
	for name, d := range map[string]*faultyDisk{
		"no segment can be made":         {create: errDisk},
		"the directory cannot be synced": {dir: errDisk},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.TempDir(), Options{Logger: quiet(), disk: d})
			wantErr(t, err, errDisk)
		})
	}
	dir := t.TempDir()
	mustClose(t, mustOpen(t, dir, Options{}))
	_, err := Open(dir, Options{Logger: quiet(), disk: &faultyDisk{sync: errDisk}})
	wantErr(t, err, errDisk)
	_, err = Open(segmentFiles(t, dir)[0], Options{})
	if pathErr := (*fs.PathError)(nil); !errors.As(err, &pathErr) {
		t.Errorf("a file for a directory: %v", err)
	}
}

func TestACheckpointThatCannotBeWrittenIsAnErrorAndDoesNotMove(t *testing.T) {
	d := &faultyDisk{}
	l := mustOpen(t, t.TempDir(), Options{disk: d})
	fill(t, l, 2)
	c := mustConsumer(t, l, "c")
	d.set(func(d *faultyDisk) { d.write = errDisk })
	wantErr(t, c.Commit(1), errDisk)
	if c.Committed() != 0 {
		t.Errorf("committed %d", c.Committed())
	}
	d.set(func(d *faultyDisk) { d.write = nil })
	relaytest.NoError(t, c.Commit(1))
	relaytest.Equal(t, "the checkpoint", c.Committed(), 1)
	d.set(func(d *faultyDisk) { d.create = errDisk })
	_, err := l.Consumer("d")
	wantErr(t, err, errDisk)
	d.set(func(d *faultyDisk) { d.create, d.dir = nil, errDisk })
	_, err = l.Consumer("d")
	wantErr(t, err, errDisk)
}
