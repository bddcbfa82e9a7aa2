package integration

import (
	"os/exec"
	"testing"
)

// kubectl is the path of the kubectl that belongs to the control plane.
func kubectl() string { return cluster.Binaries().Path("kubectl") }

// tattler is the path of the command: this test binary under another name, put on the PATH by
// testscript.
func tattler(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("tattler")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
