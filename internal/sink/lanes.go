package sink

import (
	"context"
	"sync"
)

// PutFunc sends messages of one key in order, and returns how many of the first were accepted. The error is non-nil if
// and only if these are not all.
type PutFunc func(ctx context.Context, ms []Message) (acked int, err error)

// SendByKey groups messages by key, puts at most parallel keys at a time, and returns the results of a sink's Send: how
// many of the first messages were accepted, and the error of the next one, with those after it that were accepted
// (PartialError). A temporary error stops further puts; an
// error about a message stops only its key.
func SendByKey(ctx context.Context, ms []Message, parallel int, put PutFunc) (acked int, err error) {
	s := &sending{ms: ms, errs: make([]error, len(ms)), put: put, lanes: splitByKey(ms)}
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
			return i, Partial(err, ms, i, func(i int) bool { return s.errs[i] == nil })
		}
	}
	return len(ms), nil
}

// splitByKey returns the indexes of each key's messages. The keys are in order of their first message.
func splitByKey(ms []Message) [][]int {
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

// sending is one call of SendByKey.
type sending struct {
	ms  []Message
	put PutFunc

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
		ms := make([]Message, len(lane))
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
	if err != nil && !BlamesMessage(err) && s.over == nil {
		s.over = err
	}
	return true
}
