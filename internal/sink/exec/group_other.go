//go:build !unix

package exec

import "os/exec"

// group does nothing here: only the program itself is killed, not what it has started.
func group(*exec.Cmd) {}
