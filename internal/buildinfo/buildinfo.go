// Package buildinfo has the version of this build.
package buildinfo

import "runtime/debug"

// stamped is set by the linker in builds from a checkout; `go install …@version` needs none.
var stamped string

// Version returns the stamped version, or the module's, or "devel". It is valid in a User-Agent.
func Version() string {
	if stamped != "" {
		return stamped
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
