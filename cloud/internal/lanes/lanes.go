// Package lanes sends messages of several objects at a time, and keeps the order of each object.
package lanes

import (
	"context"
	"errors"
	"sync"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Put sends messages of one key in order, and returns how many of the first were accepted. The error is non-nil if
// and only if these are not all.
type Put func(ctx context.Context, ms []sink.Message) (acked int, err error)

// Send groups messages by key, puts at most parallel keys at a time, and returns the results of a sink's Send: how
// many of the first messages were accepted, and the error of the next one. A temporary error stops further puts; an
// error about a message stops only its key.
func Send(ctx context.Context, ms []sink.Message, parallel int, put Put) (acked int, err error) {
	s := &sending{ms: ms, errs: make([]error, len(ms)), put: put, lanes: split(ms)}
	var workers sync.WaitGroup
	for range min(parallel, len(s.lanes)) {
		workers.Go(func() {
			for s.next(ctx) {
			}
		})
	}
	workers.Wait()
	for i, err := range s.errs {
		if err != nil {
			return i, err
		}
	}
	return len(ms), nil
}

// split returns the indexes of each key's messages. The keys are in order of their first message.
func split(ms []sink.Message) [][]int {
	var lanes [][]int
	lane := map[string]int{}
	for i, m := range ms {
		l, ok := lane[m.Key]
		if !ok {
			l = len(lanes)
			lane[m.Key] = l
			lanes = append(lanes, nil)
		}
		lanes[l] = append(lanes[l], i)
	}
	return lanes
}

// sending is one call of Send.
type sending struct {
	ms  []sink.Message
	put Put

	mu    sync.Mutex
	lanes [][]int // not started
	errs  []error // by index of ms: why a message was not accepted
	over  error   // the temporary error that stops further puts
}

// next sends one lane. It returns false if no lane is left.
func (s *sending) next(ctx context.Context) bool {
	s.mu.Lock()
	if len(s.lanes) == 0 {
		s.mu.Unlock()
		return false
	}
	lane, over := s.lanes[0], s.over
	s.lanes = s.lanes[1:]
	s.mu.Unlock()

	n, err := 0, over
	if over == nil {
		ms := make([]sink.Message, len(lane))
		for i, at := range lane {
			ms[i] = s.ms[at]
		}
		n, err = s.put(ctx, ms)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range lane[min(n, len(lane)):] {
		s.errs[at] = err
	}
	if Temporary(err) && s.over == nil {
		s.over = err
	}
	return true
}

// Temporary reports whether an error is about the receiver, not about a message.
func Temporary(err error) bool {
	var permanent *sink.PermanentError
	var long *sink.TooLargeError
	return err != nil && !errors.As(err, &permanent) && !errors.As(err, &long)
}
