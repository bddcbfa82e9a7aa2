package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/internal/capture"
)

// becomeReady shows what is watched, what is not, and what to do about it.
func (s *session) becomeReady(ctx context.Context, r *capture.Ready) error {
	s.ready = true
	if err := s.refused(r); err != nil {
		return err
	}
	if err := s.showHistory(ctx); err != nil {
		return err
	}
	hidden := ""
	if len(r.Hidden) > 0 {
		hidden = fmt.Sprintf(" Left out as noisy: %s (--noise)", strings.Join(r.Hidden, ", "))
	}
	// Less than a tenth of a second would be shown as 0.0.
	took := max(0.1, time.Since(s.start).Seconds())
	s.status.Line("%s, %s: %s, %s, live after %.1f s.%s", s.cluster.Name, s.namespaces,
		count(r.Kinds, "kind"), count(r.Objects, "object"), took, hidden)
	switch len(r.Missing) {
	case 0:
	case 1:
		s.status.Line("namespace %s does not exist (yet)", r.Missing[0])
	default:
		s.status.Line("namespaces %s do not exist (yet)", strings.Join(r.Missing, ", "))
	}
	if len(r.Absent) > 0 {
		s.status.Line("no %s (yet)", strings.Join(r.Absent, ", "))
	}
	if len(r.Unmatched) > 0 {
		s.status.Line("no kind matches %s (yet)", strings.Join(r.Unmatched, ", "))
	}
	s.status.Line("%s", s.waiting(r))
	if s.o.Verbose {
		for _, x := range slices.Concat(r.Forbidden, r.Failing) {
			s.status.Line("  %s: %v", x.Resource.GroupResource(), s.cluster.Explain(x.Err))
		}
	}
	return nil
}

// waiting describes, in one line, what is not watched, and that the rest is.
func (s *session) waiting(r *capture.Ready) string {
	line := ""
	if n := len(r.Forbidden); n > 0 {
		line = fmt.Sprintf("may not watch %s%s: %s. ", count(n, "kind"), where(r.Forbidden), s.names(r.Forbidden))
	}
	var ignorant, failing []capture.Refusal // refusing the selector; failing for now
	for _, f := range r.Failing {
		if apierrors.IsBadRequest(f.Err) && s.o.Fields != "" {
			ignorant = append(ignorant, f)
		} else {
			failing = append(failing, f)
		}
	}
	if n := len(ignorant); n > 0 {
		line += fmt.Sprintf("%s cannot be selected by %q: %s. ", count(n, "kind"), s.o.Fields, s.names(ignorant))
	}
	if n := len(failing); n > 0 && slices.ContainsFunc(failing, func(f capture.Refusal) bool { return !overloaded(f.Err) }) {
		line += fmt.Sprintf("%s cannot be watched%s now: %s. ", count(n, "kind"), where(failing), s.names(failing))
	} else if n > 0 {
		line += fmt.Sprintf("The API server is overloaded and lets %s%s wait: %s. ", count(n, "kind"), where(failing), s.names(failing))
	}
	line += "Waiting for changes"
	if len(s.namespaces.Include) > 0 {
		line += "; -A is the whole cluster"
	}
	return line + "."
}

// refused returns an error if nothing requested can be watched, or if the server rejects the request itself.
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
		hint := "request the rights to list and watch"
		if len(s.namespaces.Include) == 0 {
			hint += ", or choose a namespace that you may read with -n"
		}
		return fmt.Errorf("may not watch %s in %s: %w; %s", s.names(r.Forbidden), s.namespaces, r.Forbidden[0].Err, hint)
	case slices.ContainsFunc(r.Failing, func(f capture.Refusal) bool { return overloaded(f.Err) }): // this passes
		return nil
	case len(r.Failing) > 0:
		return fmt.Errorf("watch %s: %w", s.names(r.Failing), s.cluster.Explain(r.Failing[0].Err))
	case len(r.Unmatched) > 0: // globs wait for kinds to appear
		return nil
	}
	return errors.New("nothing can be watched there; -A is the whole cluster")
}

// overloaded reports whether the server, or a proxy before it, answered that it has too much to do, or when to ask again.
func overloaded(err error) bool {
	_, delay := apierrors.SuggestsClientDelay(err)
	return delay || apierrors.IsTooManyRequests(err)
}

// where names the namespaces of refusals, if they are the same for all: the kinds are watched in other
// namespaces.
func where(rs []capture.Refusal) string {
	for _, r := range rs {
		if !slices.Equal(r.Namespaces, rs[0].Namespaces) {
			return " everywhere"
		}
	}
	if len(rs[0].Namespaces) == 0 {
		return ""
	}
	return " in " + strings.Join(rs[0].Namespaces, ", ")
}

// names lists the kinds.
func (s *session) names(rs []capture.Refusal) string {
	names := make([]string, len(rs))
	for i, r := range rs {
		names[i] = r.Resource.Resource
	}
	return s.some(names)
}

// some lists the first few names, or all of them in verbose mode.
func (s *session) some(names []string) string {
	const few = 3
	if len(names) > few+1 && !s.o.Verbose {
		return strings.Join(names[:few], ", ") + ", … (-v lists them)"
	}
	return strings.Join(names, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
