//go:build !unix

package daemon

import "io/fs"

// private cannot check permissions here.
func private(fs.FileInfo) bool { return true }

// syncDir does nothing: not all of these systems can.
func syncDir(string) error { return nil }
