package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/render"
)

// session is one run of the verb: a watcher on one side, a printer on the other.
type session struct {
	o          *Options
	cluster    *kube.Cluster
	namespaces capture.Namespaces
	watcher    *capture.Watcher
	printer    printer
	start      time.Time
	ready      bool
	drawn      bool // a progress line is on the terminal
	changes    int  // listed ones, for --limit
}

// errLimit ends the loop when --limit is reached.
var errLimit = errors.New("limit reached")

func (s *session) run(ctx context.Context) error {
	if s.o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.o.Timeout)
		defer cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- s.watcher.Run(ctx) }()

	err := s.loop(ctx)
	cancel()
	s.clearProgress()
	if err == nil || errors.Is(err, errLimit) {
		err = s.printer.Flush(time.Now())
		s.summary()
	}
	// The streams end within milliseconds; a person who pressed Ctrl-C does not wait for one
	// that does not.
	select {
	case runErr := <-watched:
		if err == nil && !s.ready && ctx.Err() != nil && runErr != nil && !errors.Is(runErr, context.Canceled) && !errors.Is(runErr, context.DeadlineExceeded) {
			err = runErr
		}
	case <-time.After(2 * time.Second):
	}
	return err
}

// loop prints until ctx ends or the watcher does.
func (s *session) loop(ctx context.Context) error {
	progress := time.NewTicker(200 * time.Millisecond)
	defer progress.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
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
		case m, ok := <-s.watcher.Messages():
			if !ok {
				return nil
			}
			err = s.message(m)
		case now := <-due.C:
			err = s.printer.Tick(now)
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

func (s *session) message(m capture.Message) error {
	now := time.Now()
	switch {
	case m.Change != nil:
		return s.change(now, *m.Change)
	case m.Ready != nil:
		return s.becomeReady(m.Ready)
	case m.Away != nil:
		return s.away(now, m.Away)
	case m.Problem != nil:
		s.status("! %v", m.Problem)
	}
	return nil
}

func (s *session) change(now time.Time, c capture.Change) error {
	s.clearProgress()
	if err := s.printer.Change(now, c); err != nil {
		return err
	}
	if c.Quiet || c.Op == event.Gap {
		return nil
	}
	if s.changes++; s.changes == s.o.Limit {
		return errLimit
	}
	return nil
}

func (s *session) away(now time.Time, a *capture.Away) error {
	if a.Until.IsZero() {
		s.status("! the API server does not answer: %v; trying again", s.cluster.Explain(a.Err))
		return nil
	}
	text := fmt.Sprintf("API server was away %s; resumed", render.Duration(a.Until.Sub(a.Since)))
	if a.Relisted > 0 {
		text += fmt.Sprintf(", %s relisted (net changes only)", count(a.Relisted, "stream"))
	} else {
		text += ", nothing missed"
	}
	return s.printer.Notice(now, text)
}

// becomeReady says what is watched, what is not, and what to do about it.
func (s *session) becomeReady(r *capture.Ready) error {
	s.clearProgress()
	s.ready = true
	if err := s.refused(r); err != nil {
		return err
	}
	line := fmt.Sprintf("%s, %s: %s, %s, live after %.1f s.", s.cluster.Name, s.namespaces,
		count(r.Kinds, "kind"), count(r.Objects, "object"), time.Since(s.start).Seconds())
	if len(r.Hidden) > 0 {
		line += fmt.Sprintf(" Hidden: %s (--noise)", strings.Join(r.Hidden, ", "))
	}
	s.status("%s", line)
	if len(r.Missing) > 0 {
		s.status("namespace %s does not exist (yet)", strings.Join(r.Missing, ", "))
	}
	line = ""
	if n := len(r.Forbidden); n > 0 {
		line = fmt.Sprintf("may not watch %s: %s. ", count(n, "kind"), s.names(r.Forbidden))
	}
	if n := len(r.Failing); n > 0 {
		line += fmt.Sprintf("%s cannot be watched now: %s. ", count(n, "kind"), s.names(r.Failing))
	}
	line += "Waiting for changes"
	if !s.o.AllNamespaces && len(s.namespaces.Include) > 0 {
		line += "; -A is the whole cluster"
	}
	s.status("%s.", line)
	if s.o.Verbose {
		for _, x := range append(r.Forbidden, r.Failing...) {
			s.status("  %s: %s", x.Resource.GroupResource(), s.cluster.Explain(x.Err))
		}
	}
	return nil
}

// refused is the error where nothing that was asked for can be watched, or where the server says
// that the question itself is wrong.
func (s *session) refused(r *capture.Ready) error {
	for _, f := range r.Failing {
		if apierrors.IsBadRequest(f.Err) && len(s.o.Types) > 0 {
			return fmt.Errorf("watch %s: %w", f.Resource.GroupResource(), f.Err)
		}
	}
	if r.Kinds > 0 {
		return nil
	}
	switch {
	case len(r.Forbidden) > 0:
		hint := "ask for the rights list and watch"
		if len(s.namespaces.Include) == 0 {
			hint += ", or choose a namespace that you may read with -n"
		}
		return fmt.Errorf("may not watch %s in %s: %w; %s", s.names(r.Forbidden), s.namespaces, r.Forbidden[0].Err, hint)
	case len(r.Failing) > 0:
		return fmt.Errorf("watch %s: %w", s.names(r.Failing), s.cluster.Explain(r.Failing[0].Err))
	}
	return errors.New("the server has nothing that can be watched there")
}

// names lists the kinds, the first few unless all are wanted.
func (s *session) names(rs []capture.Refusal) string {
	const few = 3
	var names []string
	for _, r := range rs {
		if len(names) == few && !s.o.Verbose && len(rs) > few+1 {
			return strings.Join(names, ", ") + ", … (-v lists them)"
		}
		names = append(names, r.Resource.Resource)
	}
	return strings.Join(names, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// status writes a line to the status stream, where nobody waits for it: an error there is not the
// verb's failure.
func (s *session) status(format string, args ...any) {
	s.clearProgress()
	fmt.Fprintf(s.o.IO.Err, format+"\n", args...)
}

func (s *session) drawProgress() {
	if !s.o.IO.ErrTTY {
		return
	}
	kinds, settled, objects := s.watcher.Progress()
	s.drawn = true
	if kinds == 0 {
		fmt.Fprintf(s.o.IO.Err, "\r\x1b[K%s: asking what there is …", s.cluster.Name)
		return
	}
	fmt.Fprintf(s.o.IO.Err, "\r\x1b[K%s: %d of %s live, %s …", s.cluster.Name, settled, count(kinds, "kind"), count(objects, "object"))
}

func (s *session) clearProgress() {
	if s.drawn {
		s.drawn = false
		fmt.Fprint(s.o.IO.Err, "\r\x1b[K")
	}
}

// summary counts what was not listed, so that nothing hidden is uncounted.
func (s *session) summary() {
	if note := s.printer.Unlisted(); note != "" && s.ready {
		s.status("%s", note)
	}
}
