package file

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the options of a file sink.
type Options struct {
	// Path is the file to append to. Its directory must exist. Tattler does not create it: if a volume were not
	// mounted, changes would be written below its empty mount point instead. The path may name a character device, but
	// not a pipe.
	Path string `yaml:"path"`
	// Rotate limits the size of the file. Without this key, the file grows without limit.
	Rotate Rotate `yaml:"rotate"`
	// Sync controls when lines are safe from a crash of the machine: always (before they count as delivered),
	// interval (up to SyncEvery later), or never (whenever the kernel writes them). Default: always.
	Sync Sync `yaml:"sync"`
	// SyncEvery is the longest delay if sync is interval. Default: 1s.
	SyncEvery time.Duration `yaml:"syncEvery"`
}

// Rotate configures when the file is renamed to PATH.1, PATH.1 to PATH.2, and so on.
type Rotate struct {
	// Size is the maximum size of the file, unless a single line is longer. With 0 the file is not rotated.
	Size sink.Size `yaml:"size"`
	// Keep is the number of rotated files to keep; older ones are removed. Default: 5.
	Keep int `yaml:"keep"`
}

// Sync is an fsync policy.
type Sync string

// The policies. A kill -9 of this process loses no line with any of them: the kernel already has it.
const (
	Always   Sync = "always"
	Interval Sync = "interval"
	Never    Sync = "never"
)

// Validate returns an error that names the wrong key.
func (o Options) Validate() error {
	switch {
	case o.Path == "":
		return errors.New("path: missing")
	case o.Rotate.Size < 0 || o.Rotate.Keep < 0:
		return errors.New("rotate: size and keep must not be negative")
	case o.Rotate.Keep > 0 && o.Rotate.Size == 0:
		return errors.New("rotate: keep has no effect without size; set size, such as 100Mi")
	case o.Sync != "" && o.Sync != Always && o.Sync != Interval && o.Sync != Never:
		return fmt.Errorf("sync: %q is not one of %s, %s, %s", o.Sync, Always, Interval, Never)
	case o.SyncEvery < 0:
		return errors.New("syncEvery: must not be negative")
	case o.SyncEvery > 0 && o.Sync != Interval:
		return fmt.Errorf("syncEvery: only for sync: %s", Interval)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Rotate.Keep = cmp.Or(o.Rotate.Keep, 5)
	o.Sync = cmp.Or(o.Sync, Always)
	o.SyncEvery = cmp.Or(o.SyncEvery, time.Second)
	return o
}
