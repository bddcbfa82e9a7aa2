package file

import (
	"errors"
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Options are the keys of a file sink.
type Options struct {
	// Path of the file. Its directory must exist: to make one would write beside a volume that is not
	// mounted. It may be a character device, but no pipe.
	Path string `yaml:"path"`
	// Rotate is by size; the zero value does not rotate.
	Rotate Rotate `yaml:"rotate"`
	// Sync says when what is written is safe from a crash of the machine: always (the default: before it
	// is acknowledged), interval (up to SyncEvery later), or never (when the kernel likes).
	Sync Sync `yaml:"sync"`
	// SyncEvery is for Sync interval (1 second).
	SyncEvery time.Duration `yaml:"syncEvery"`
}

// Rotate says when the file is renamed to PATH.1, PATH.1 to PATH.2, and so on.
type Rotate struct {
	// Size is what a file does not grow beyond, unless one line is longer. 0 does not rotate.
	Size sink.Size `yaml:"size"`
	// Keep is how many rotated files there are at most (5); the oldest is removed.
	Keep int `yaml:"keep"`
}

// Sync is an fsync policy.
type Sync string

// The policies. None is needed for a kill -9: what is written is the kernel's then.
const (
	Always   Sync = "always"
	Interval Sync = "interval"
	Never    Sync = "never"
)

// Validate says what is wrong with the options, naming the key.
func (o Options) Validate() error {
	switch {
	case o.Path == "":
		return errors.New("path: a file sink needs one")
	case o.Rotate.Size < 0 || o.Rotate.Keep < 0:
		return errors.New("rotate: size and keep are not negative")
	case o.Rotate.Keep > 0 && o.Rotate.Size == 0:
		return errors.New("rotate: keep without size never rotates; set size, such as 100Mi")
	case o.Sync != "" && o.Sync != Always && o.Sync != Interval && o.Sync != Never:
		return fmt.Errorf("sync: %q is none of %s, %s, %s", o.Sync, Always, Interval, Never)
	case o.SyncEvery < 0:
		return errors.New("syncEvery: not negative")
	case o.SyncEvery > 0 && o.Sync != Interval:
		return fmt.Errorf("syncEvery: only for sync: %s", Interval)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Rotate.Keep == 0 {
		o.Rotate.Keep = 5
	}
	if o.Sync == "" {
		o.Sync = Always
	}
	if o.SyncEvery == 0 {
		o.SyncEvery = time.Second
	}
	return o
}
