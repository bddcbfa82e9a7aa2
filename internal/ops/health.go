package ops

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
)

const (
	// healthTimeout is how long /healthz waits for the status: kubelet's probes wait a second.
	healthTimeout = 500 * time.Millisecond
	// stuck is how long the daemon may fail to report before it counts as stuck.
	stuck = time.Minute
	// stuckWrite is how long one write may take: a busy disk takes seconds.
	stuckWrite = 5 * time.Minute
	// reconnectGrace is how long a stream, or the API server, may be away without a report: API servers restart.
	reconnectGrace = time.Minute
	// listGrace is how long a stream may list, or alternate between listing and failing, before it counts as not
	// live: the list of a huge kind takes minutes.
	listGrace = 10 * time.Minute
	// maxKinds bounds the number of kinds in an answer of /readyz.
	maxKinds = 20
)

// healthz reports whether a restart would help, because Kubernetes restarts the pod on a 503. A restart would
// not bring back an API server, a receiver, rights or disk space: the daemon recovers from these by itself. It
// would help if part of the daemon hangs: if it has not reported its state for a minute although it was asked,
// or if a write to the journal does not end. An error while reporting is not a reason: the daemon still
// answers.
func (h *handler) healthz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	s, err := h.asker.status(ctx)
	reason := ""
	if d := h.asker.silence(); d > stuck {
		reason = fmt.Sprintf("the daemon has not reported its state for %s", d.Round(time.Second))
	} else if at := s.Journal.WritingSince; err == nil && !at.IsZero() && time.Since(at) > stuckWrite {
		reason = "one write to the journal has not ended" + since(at, time.Now())
	}
	if reason != "" {
		refuse(w, http.StatusServiceUnavailable, reason)
		return
	}
	if err == nil && s.Starting != "" {
		say(w, "ok: "+s.Starting)
		return
	}
	say(w, "ok")
}

// readyz reports whether everything that should be recorded is recorded.
func (h *handler) readyz(w http.ResponseWriter, r *http.Request) {
	s, err := h.status(r)
	if err != nil {
		h.refuseStatus(w, err)
		return
	}
	rights := missingRights(&s)
	if reasons := unready(&s, time.Now()); len(reasons) > 0 {
		refuse(w, http.StatusServiceUnavailable, strings.Join(append(reasons, rights...), "\n"))
		return
	}
	say(w, strings.Join(append([]string{"ok"}, rights...), "\n"))
}

// unready returns the reasons for not being ready, one per line. Errors are left out, because the endpoint is
// not authenticated; tattler status has them.
func unready(s *control.Status, now time.Time) (reasons []string) {
	if s.Starting != "" {
		return []string{"the start: " + s.Starting + since(s.Started, now)}
	}
	each(s, func(cluster string, s *control.Status) {
		reasons = append(reasons, named(cluster, notWatched(s, now))...)
	})
	if s.Journal.Error != "" {
		reasons = append(reasons, "the journal cannot be written"+since(s.Journal.ErrorAt, now))
	}
	if s.Journal.ReadError != "" {
		reasons = append(reasons, "the journal cannot be read")
	}
	each(s, func(cluster string, s *control.Status) {
		reasons = append(reasons, named(cluster, notLiveKinds(s, now))...)
	})
	return reasons
}

// missing summarizes the streams of a kind that are not live and should be.
type missing struct {
	streams, of int
	first       *control.Stream // the one that has not been live for longest
}

// notLiveKinds names the kinds with streams that are not live: during the start all that may become live; later those
// that have been waiting, or not live, for too long.
func notLiveKinds(s *control.Status, now time.Time) (reasons []string) {
	kinds := map[string]*missing{}
	for i := range s.Streams {
		st := &s.Streams[i]
		k := kinds[st.Resource]
		if k == nil {
			k = &missing{}
			kinds[st.Resource] = k
		}
		k.of++
		if !overdue(st, s.Settled, now) {
			continue
		}
		if k.streams++; k.streams == 1 || notLiveSince(st).Before(notLiveSince(k.first)) {
			k.first = st
		}
	}
	maps.DeleteFunc(kinds, func(_ string, k *missing) bool { return k.streams == 0 })
	names := slices.Sorted(maps.Keys(kinds))
	// The first to fail most likely has the cause.
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(notLiveSince(kinds[a].first).Unix(), notLiveSince(kinds[b].first).Unix())
	})
	for i, name := range names {
		if i == maxKinds {
			return append(reasons, fmt.Sprintf("and %d more kinds", len(names)-i))
		}
		k := kinds[name]
		line := fmt.Sprintf("%s: %s%s", name, k.first.State, since(k.first.Since, now))
		if k.first.TryingSince.Before(k.first.Since) && !k.first.TryingSince.IsZero() {
			line += ", not live" + since(k.first.TryingSince, now)
		}
		if k.of > 1 {
			line += fmt.Sprintf(" (%d of %d streams)", k.streams, k.of)
		}
		reasons = append(reasons, line)
	}
	return reasons
}

// overdue reports whether a stream should be live, is not, and has exceeded its time.
func overdue(s *control.Stream, settled bool, now time.Time) bool {
	switch {
	case s.State == control.Forbidden:
		return settled && revoked(s) && now.Sub(s.Since) > reconnectGrace
	case s.State != control.Listing && s.State != control.Waiting:
		return false
	case !settled, s.State == control.Waiting && now.Sub(s.Since) > reconnectGrace:
		return true
	}
	return !s.TryingSince.IsZero() && now.Sub(s.TryingSince) > listGrace
}

// revoked reports whether a stream was recorded before and is forbidden now. A kind that was never allowed does not
// count.
func revoked(s *control.Stream) bool {
	return s.State == control.Forbidden && s.ResourceVersion != ""
}

// notLiveSince returns since when a stream has not been live, as far as known.
func notLiveSince(s *control.Stream) time.Time {
	if s.TryingSince.IsZero() {
		return s.Since
	}
	return s.TryingSince
}

// since formats how long something has lasted, if that is known.
func since(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " for " + max(0, now.Sub(at)).Round(time.Second).String()
}
