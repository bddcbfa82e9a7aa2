package clustertest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLeft: left names a running child, but not one that has ended, be it a zombie or not.
func TestLeft(t *testing.T) {
	if err := left(nil, endLimit); err != nil {
		t.Fatal(err)
	}
	cmd, end := idle(t)
	if err := left(nil, time.Second); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("(%d)", cmd.Process.Pid)) {
		t.Errorf("with process %d running, left returned %v", cmd.Process.Pid, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := left(nil, endLimit); err != nil { // a zombie
		t.Error(err)
	}
	end()
}
