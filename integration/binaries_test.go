package integration

import (
	"os/exec"
	"testing"
)

// kubectl returns the path of the control plane's kubectl.
func kubectl() string { return cluster.Binaries().Path("kubectl") }

// tattler returns the path of the command: this test binary under another name, put on the PATH by testscript.
func tattler(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("tattler")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
