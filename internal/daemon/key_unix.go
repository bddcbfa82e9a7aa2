//go:build unix

package daemon

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// private tells whether a file is its owner's alone. A group may read one that root owns, as is usual for
// keys: so it is with a Secret in the volume of a pod whose user is not root.
//
// Source: PostgreSQL's rule for ssl_key_file; Kubernetes gives a volume's files to the pod's fsGroup.
func private(info fs.FileInfo) bool {
	mode := info.Mode().Perm()
	st, ok := info.Sys().(*syscall.Stat_t)
	return mode&0o077 == 0 || ok && st.Uid == 0 && mode&0o037 == 0
}

// syncDir has what was made in a folder survive a crash of the machine, where the file system can.
//
// Source: fsync(2), which also names EINVAL for what cannot be synchronized.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
