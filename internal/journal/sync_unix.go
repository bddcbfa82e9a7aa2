//go:build !windows

package journal

import "os"

func syncOpen(d *os.File) error { return d.Sync() }
