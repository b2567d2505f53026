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
	_, err := fmt.Fprintln(w.stdout, versionText())
	return err
}

func versionText() string {
	commit := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	return fmt.Sprintf("penstock %s (commit %s, %s)", version, commit, runtime.Version())
}
