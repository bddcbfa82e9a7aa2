package deliver_test

import (
	"context"
	"errors"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// later is the sink of a process that delivers at the end of a window, or when it holds too much.
type later struct {
	*process
	held []sink.Message
	due  time.Time
}

// Send accepts some of the messages.
func (l *later) Send(_ context.Context, ms []sink.Message) (int, error) {
	if err := l.alive(100); err != nil {
		return 0, err
	}
	take, err := len(ms), error(nil)
	if l.m.chance(20) {
		take, err = l.m.pick(len(ms)), errDown
	}
	if len(l.held) == 0 && take > 0 {
		l.due = time.Now().Add(time.Duration(l.m.pick(3000)) * time.Millisecond)
	}
	l.held = append(l.held, ms[:take]...)
	if len(l.held) > 60 {
		l.due = time.Now()
	}
	return take, err
}

func (l *later) Due() time.Time { return l.due }

func (l *later) Drop() {
	if len(l.held) > 0 {
		l.m.mu.Lock()
		l.m.seen.dropped++
		l.m.mu.Unlock()
	}
	l.held, l.due = nil, time.Time{}
}

// Flush delivers all, or reports that it did not.
func (l *later) Flush(ctx context.Context) error {
	if err := l.alive(60); err != nil {
		return err
	}
	switch {
	case l.m.chance(6):
		return errDown
	case l.m.chance(10):
		return &sink.RetryAfterError{After: 3 * time.Second, Err: errDown}
	case l.m.chance(20):
		<-ctx.Done()
		return ctx.Err()
	}
	for _, m := range l.held {
		if l.m.kind(m.ID) == poisonous {
			return &sink.PermanentError{Err: errors.New("refused")}
		}
	}
	for _, m := range l.held {
		l.m.arrive(m)
	}
	l.mu.Lock()
	l.unsaved = true
	l.mu.Unlock()
	if l.m.chance(10) {
		return errors.New("delivered, but unconfirmed")
	}
	if err := l.alive(30); err != nil { // killed after the receiver had everything
		return err
	}
	if len(l.held) > 1 {
		l.m.mu.Lock()
		l.m.seen.together++
		l.m.mu.Unlock()
	}
	l.held, l.due = nil, time.Time{}
	return nil
}
