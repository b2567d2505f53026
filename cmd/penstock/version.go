package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the build.
var version = "dev"

type versionCommand struct{}

// Run prints the version, the commit and the Go it was built with.
func (versionCommand) Run(w world) error {
	commit := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	_, err := fmt.Fprintf(w.stdout, "penstock %s (commit %s, %s)\n", version, commit, runtime.Version())
	return err
}
