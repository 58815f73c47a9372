package main

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// version is set by the linker for a release.
var version string

// currentVersion is the version of a release, or else what the build knows of
// its source.
func currentVersion() string {
	built := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		built = cmp.Or(info.Main.Version, built)
	}
	return cmp.Or(version, built)
}

type versionCmd struct{}

// Run carries the command out.
func (versionCmd) Run(t *terminal) error {
	return printJSON(t.stdout, struct {
		Version string `json:"version"`
		Go      string `json:"go"`
	}{currentVersion(), runtime.Version()})
}
