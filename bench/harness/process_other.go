//go:build !linux

package harness

import (
	"errors"
	"syscall"
)

// dieWithParent is not to be had here: a killed parent leaves a child until its deadline.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// resident is not known here.
func resident() (now, peak float64) { return 0, 0 }

func resetPeak() error { return errors.New("reset peak of memory: not supported on this system") }
