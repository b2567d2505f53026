package app

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/penstock/penstock/cmd/penstock/client"
)

type versionCommand struct{}

// Run prints the version, the commit and the Go it was built with.
func (versionCommand) Run(w client.Environment) error {
	_, err := fmt.Fprintln(w.Stdout, versionText(w.Version))
	return err
}

func versionText(version string) string {
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
