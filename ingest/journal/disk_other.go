//go:build !linux

package journal

func (f osFile) Datasync() error      { return f.Sync() }
func (f osFile) Allocate(int64) error { return nil }
func (f osFile) Uncache() error       { return nil }
