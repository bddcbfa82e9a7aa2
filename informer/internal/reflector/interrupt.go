package reflector

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ErrMissed reports that versions of the server are missing here although the watch has passed them. That proves no
// other history: the watch may have lost them, or that of an earlier run.
var ErrMissed = errors.New("the watch did not show everything")

// ErrStalled reports that the connection of a watch stood still: what comes on it may have been sent long ago.
var ErrStalled = errors.New("the connection stood still")

// interrupter ends the current watch from another goroutine.
type interrupter struct {
	current atomic.Pointer[interruptible]
}

// interruptible is an open watch.
type interruptible struct {
	cancel context.CancelCauseFunc
	asked  time.Time // when it was requested
}

// Interrupt ends the current watch as if the server had sent err; without a watch it does nothing.
func (r *Reflector) Interrupt(err error) {
	r.interrupt(err, func(time.Time) bool { return true })
}

// InterruptStalled ends the current watch, to open it anew, if it was requested before a time.
func (r *Reflector) InterruptStalled(before time.Time) {
	r.interrupt(ErrStalled, before.After)
}

func (r *Reflector) interrupt(err error, concerns func(asked time.Time) bool) {
	if w := r.interrupter.current.Load(); w != nil && concerns(w.asked) {
		w.cancel(err)
	}
}
