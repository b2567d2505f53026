package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The files of the data directory that the program itself keeps.
const (
	adminTokenFile = "admin-token"
	demoTokenFile  = "demo-token"
	nodeFile       = "node"
)

// kept returns a secret of the data directory, created at the first start, and
// whether it is new.
func kept(dir, name string, length int) (text string, fresh bool, err error) {
	path := filepath.Join(dir, name)
	b, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(b))) > 0 {
		return strings.TrimSpace(string(b)), false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, fmt.Errorf("data directory: %w", err)
	}
	text = strings.ToLower(rand.Text())[:length]
	if err := writeDurably(dir, name, text+"\n"); err != nil {
		return "", false, fmt.Errorf("data directory: %w", err)
	}
	return text, true, nil
}

// writeDurably writes a file atomically and syncs it.
func writeDurably(dir, name, text string) error {
	f, err := os.CreateTemp(dir, name+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
