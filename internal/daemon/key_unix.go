//go:build unix

package daemon

import (
	"io/fs"
	"syscall"
)

// private reports whether only its owner may read a file. A file of root may be readable by its group, which is
// common for keys, and needed for a Secret in a volume of a pod whose user is not root.
//
// Source: PostgreSQL's rule for ssl_key_file; Kubernetes gives a volume's files to the pod's fsGroup.
func private(info fs.FileInfo) bool {
	mode := info.Mode().Perm()
	st, ok := info.Sys().(*syscall.Stat_t)
	return mode&0o077 == 0 || ok && st.Uid == 0 && mode&0o037 == 0
}
