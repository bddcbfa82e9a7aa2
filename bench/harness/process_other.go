//go:build !linux

package harness

import (
	"errors"
	"syscall"
)

// dieWithParent does nothing: on this system the child of a killed parent runs until its deadline.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// resident is not supported on this system.
func resident() (now, peak float64) { return 0, 0 }

func resetPeak() error { return errors.New("reset peak of memory: not supported on this system") }
