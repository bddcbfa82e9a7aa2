//go:build !unix

package exec

import "os/exec"

// group does nothing here: only the program itself is killed, not its children.
func group(*exec.Cmd) {}
