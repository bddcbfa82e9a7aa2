package harness

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// dieWithParent makes the kernel kill a child when the thread that started it ends; see child.start.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// resident returns the resident memory of this process and its maximum since [resetPeak], bytes.
func resident() (now, peak float64) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	for line := range bytes.Lines(b) {
		var to *float64
		switch {
		case bytes.HasPrefix(line, []byte("VmRSS:")):
			to = &now
		case bytes.HasPrefix(line, []byte("VmHWM:")):
			to = &peak
		default:
			continue
		}
		var kib float64
		if _, err := fmt.Sscanf(string(line[6:]), "%f kB", &kib); err == nil {
			*to = kib * 1024
		}
	}
	return now, peak
}

// resetPeak makes the current resident memory the peak.
func resetPeak() error {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("reset peak of memory: %w", err)
	}
	return nil
}
