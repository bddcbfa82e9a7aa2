// Package buildinfo has the version of this build.
package buildinfo

import "runtime/debug"

// These are set by the linker: stamped in builds from a checkout, all of them in releases. `go install …@version` needs
// none of them.
var (
	stamped   string
	commit    string // the full hash
	committed string // in RFC 3339
)

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

// Commit returns the commit of a release and its time in RFC 3339, in UTC; "" if this is not a release.
func Commit() (hash, at string) { return commit, committed }
