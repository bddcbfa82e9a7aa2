package reflector

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrMissed reports that versions of the server are missing here although the watch has passed them. That proves no
// other history: the watch may have lost them, or that of an earlier run.
var ErrMissed = errors.New("the watch did not show everything")

// ErrStalled reports that the connection of a watch stood still: what comes on it may have been sent long ago.
var ErrStalled = errors.New("the connection stood still")

// interrupter ends the current watch from another goroutine.
type interrupter struct {
	cancel atomic.Pointer[context.CancelCauseFunc]
}

// Interrupt ends the current watch as if the server had sent err; without a watch it does nothing.
func (r *Reflector) Interrupt(err error) {
	if cancel := r.interrupter.cancel.Load(); cancel != nil {
		(*cancel)(err)
	}
}
