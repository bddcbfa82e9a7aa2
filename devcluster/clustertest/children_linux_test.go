package clustertest

import (
	"fmt"
	"strings"
	"testing"
)

// TestLeft: a child that runs is named, and one that has ended is not, waited for or not.
func TestLeft(t *testing.T) {
	if err := left(nil); err != nil {
		t.Fatal(err)
	}
	cmd, end := idle(t)
	if err := left(nil); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("(%d)", cmd.Process.Pid)) {
		t.Errorf("of the process %d it says %v", cmd.Process.Pid, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := left(nil); err != nil { // a zombie
		t.Error(err)
	}
	end()
}
