package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/selection"
)

// session is one run of the verb: it connects a watcher with a printer.
type session struct {
	o          *Options
	filter     *filter
	cluster    *kube.Cluster
	namespaces selection.Namespaces
	watcher    watcher
	printer    printer
	unroller   unroller
	status     *terminal.Status
	start      time.Time
	ready      bool
	changes    int      // listed ones, for --limit
	history    *history // nil without --since
}

// watcher is the part of capture.Watcher that a session uses.
type watcher interface {
	Run(ctx context.Context) error
	Messages() <-chan capture.Message
	Progress() (kinds, settled, objects int)
	Unstarted() []string
}

// ended is closed when the watcher's Run has returned; read its error after that.
type ended struct {
	done chan struct{}
	err  error
}

const (
	redraw = 200 * time.Millisecond
	// slowStart is the time after which a start is so slow that the user wants a reason.
	slowStart = 5 * time.Second
	// partingTime bounds the wait for the streams, which usually end within milliseconds. After Ctrl-C, a user
	// should not wait for one that hangs, for example in its credential plugin.
	partingTime = 500 * time.Millisecond
)

// errLimit ends the loop when --limit is reached.
var errLimit = errors.New("limit reached")

// run watches until ctx ends, which is not an error, or until --limit, --timeout or a failure.
func (s *session) run(ctx context.Context) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	end := &ended{done: make(chan struct{})}
	go func() {
		defer close(end.done)
		end.err = s.watcher.Run(watching)
	}()

	err := s.loop(ctx, end)
	cancel()
	if err == nil {
		err = s.release()
	}
	s.status.Clear()
	if errors.Is(err, errLimit) {
		err = nil
	}
	s.printer.SetWidth(s.o.IO.Width())
	if flushed := s.printer.Flush(time.Now()); err == nil {
		err = flushed
	}
	if err == nil {
		s.summary()
	}
	select {
	case <-end.done:
	case <-time.After(partingTime):
	}
	return err
}

// loop prints until ctx or the time ends, or until the watcher ends, whose error it returns.
func (s *session) loop(ctx context.Context, end *ended) error {
	progress := time.NewTicker(redraw)
	defer progress.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	slow := time.After(slowStart)
	var timeout <-chan time.Time
	if s.o.Timeout > 0 {
		timeout = time.After(s.o.Timeout)
	}
	for {
		if at, ok := s.printer.Next(); ok {
			due.Reset(time.Until(at))
		} else {
			due.Stop()
		}
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-timeout:
			return s.timeUp()
		case m, ok := <-s.watcher.Messages():
			if !ok {
				return s.over(ctx, end)
			}
			s.printer.SetWidth(s.o.IO.Width())
			err = s.message(ctx, m)
		case now := <-due.C:
			s.printer.SetWidth(s.o.IO.Width())
			err = s.printer.Tick(now)
		case <-slow:
			if _, live, _ := s.watcher.Progress(); !s.ready && live > 0 {
				err = s.showHistory(ctx)
			}
			s.reportSlow()
		case <-progress.C:
			if s.ready {
				progress.Stop()
				continue
			}
			s.drawProgress()
		}
		if err != nil {
			return err
		}
	}
}

// over returns the watcher's error; nil if we ended it.
func (s *session) over(ctx context.Context, end *ended) error {
	<-end.done
	if ctx.Err() == nil {
		return s.cluster.ExplainStart(end.err)
	}
	return nil
}

// timeUp ends the watch at --timeout. That is a failure only if nothing could be watched yet.
func (s *session) timeUp() error {
	kinds, settled, _ := s.watcher.Progress()
	switch {
	case s.ready:
	case kinds == 0:
		return fmt.Errorf("after %s: %w", s.o.Timeout, s.cluster.Explain(context.DeadlineExceeded))
	default:
		s.status.Line("timed out before every kind was live: %d of %s", settled, count(kinds, "kind"))
	}
	return nil
}

// batch shows the changes of a batch, or keeps them until the history is shown.
func (s *session) batch(ctx context.Context, now time.Time, b *capture.Batch) error {
	s.collect(b)
	for _, c := range s.unroller.unroll(now, b) {
		held, err := s.hold(ctx, &c)
		if !held {
			err = s.change(now, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) message(ctx context.Context, m capture.Message) error {
	now := time.Now()
	switch {
	case m.Batch != nil:
		return s.batch(ctx, now, m.Batch)
	case m.Ready != nil:
		return s.becomeReady(ctx, m.Ready)
	case m.Away != nil:
		return s.away(now, m.Away)
	case m.Problem != nil:
		s.status.Line("! %v", m.Problem)
	}
	return nil
}

func (s *session) change(now time.Time, c change.Change) error {
	shown, listed := s.filter.shows(&c)
	if !shown {
		return nil
	}
	if err := s.printer.Change(now, c); err != nil {
		return err
	}
	if c.Op == event.Gap || c.Quiet && !s.o.Noise || !listed {
		return nil
	}
	if s.changes++; s.changes == s.o.Limit {
		return errLimit
	}
	return nil
}

func (s *session) away(now time.Time, a *capture.Away) error {
	if a.Until.IsZero() {
		s.status.Line("! the API server does not answer: %v; retrying", kube.Cause(a.Err))
		return nil
	}
	text := fmt.Sprintf("API server was away %s; resumed", render.Duration(a.Until.Sub(a.Since)))
	switch {
	case a.Paused:
		text = fmt.Sprintf("tattler did not run for %s; resumed", render.Duration(a.Until.Sub(a.Since)))
	case a.Silent:
		text = fmt.Sprintf("API server was silent for %s; resumed", render.Duration(a.Until.Sub(a.Since)))
	}
	if a.Relisted > 0 {
		text += fmt.Sprintf(", %s relisted (net changes only)", count(a.Relisted, "stream"))
	} else {
		text += ", nothing missed"
	}
	return s.printer.Notice(now, text)
}

func (s *session) drawProgress() {
	kinds, settled, objects := s.watcher.Progress()
	switch {
	case kinds > 0:
		s.status.Progress("%s: %d of %s live, %s …", s.cluster.Name, settled, count(kinds, "kind"), count(objects, "object"))
	case s.cluster.Config.ExecProvider == nil: // a credential plugin may be prompting on this line
		s.status.Progress("%s: asking the server for its kinds …", s.cluster.Name)
	}
}

// reportSlow reports what a start is waiting for. Kinds that are live are shown already.
func (s *session) reportSlow() {
	if names := s.watcher.Unstarted(); !s.ready && len(names) > 0 {
		s.status.Line("no answer yet for %s: %s; showing changes of the others",
			count(len(names), "kind"), s.some(names))
	}
}

// summary counts the changes that were not listed, so that hidden ones are accounted for.
func (s *session) summary() {
	if note := s.printer.Unlisted(); note != "" && s.ready {
		s.status.Line("%s", note)
	}
}
