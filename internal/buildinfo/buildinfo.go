// Package buildinfo says which build of tattler this is.
package buildinfo

import "runtime/debug"

// stamped is set by the linker in builds from a checkout; `go install …@version` needs none.
var stamped string

// Version is the stamped version, or the module's; "devel" where neither is known. It is fit for a
// User-Agent.
func Version() string {
	if stamped != "" {
		return stamped
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
