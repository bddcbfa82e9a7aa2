//go:build unix

package daemon

import (
	"io/fs"
	"syscall"
	"testing"
)

// owned is a file with an owner and a mode.
type owned struct {
	fs.FileInfo
	mode fs.FileMode
	uid  uint32
}

func (o owned) Mode() fs.FileMode { return o.mode }
func (o owned) Sys() any          { return &syscall.Stat_t{Uid: o.uid} }

func TestPrivate(t *testing.T) {
	for _, tc := range []struct {
		why  string
		file owned
		want bool
	}{
		{"the owner's alone", owned{mode: 0o600, uid: 1000}, true},
		{"read-only", owned{mode: 0o400, uid: 1000}, true},
		{"a Secret in a pod's volume with fsGroup", owned{mode: 0o440, uid: 0}, true},
		{"a user's own group may be everybody's", owned{mode: 0o440, uid: 1000}, false},
		{"everybody's", owned{mode: 0o444, uid: 0}, false},
		{"a group that may write", owned{mode: 0o460, uid: 0}, false},
	} {
		if got := private(tc.file); got != tc.want {
			t.Errorf("%s: %t", tc.why, got)
		}
	}
}
