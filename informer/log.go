package informer

import (
	"log/slog"
	"sync"
	"time"
)

// streamLog logs what an operator should know: see Options.Log.
type streamLog struct {
	log *slog.Logger

	mu      sync.Mutex
	failing map[Stream]string // the errors of failing streams
	mutated time.Time         // when a mutation was last logged
	since   int               // mutations since then
}

func newStreamLog(log *slog.Logger) *streamLog {
	if log == nil {
		log = slog.Default()
	}
	return &streamLog{log: log, failing: map[Stream]string{}}
}

func (l *streamLog) gap(s Stream, g Gap) {
	l.log.Warn("changes were missed", append(where(s), "reason", g.Reason, "since", g.Since, "until", g.Until)...)
}

func (l *streamLog) decodeError(s Stream, err error) {
	l.log.Warn("cannot decode object", append(where(s), "error", err)...)
}

func (l *streamLog) indexError(s Stream, k Key, err error) {
	l.log.Error("cannot index object", append(where(s), "key", k.String(), "error", err)...)
}

func (l *streamLog) checkpoint(s Stream, err error) {
	l.log.Warn("checkpoint failed", append(where(s), "error", err)...)
}

func where(s Stream) []any {
	attrs := []any{"resource", s.Resource.GroupResource().String()}
	if s.Namespace != "" {
		attrs = append(attrs, "namespace", s.Namespace)
	}
	return attrs
}

// mutation logs at most once a minute: a handler that writes to its objects does so every time.
func (l *streamLog) mutation(s Stream, k Key, err error) {
	l.mu.Lock()
	l.since++
	n, now := l.since, time.Now()
	log := now.Sub(l.mutated) >= time.Minute
	if log {
		l.mutated, l.since = now, 0
	}
	l.mu.Unlock()
	if log {
		l.log.Error("a shared object was modified", append(where(s), "key", k.String(), "error", err, "found", n)...)
	}
}

func (l *streamLog) state(st Status) {
	l.mu.Lock()
	before, failed := l.failing[st.Stream]
	switch {
	case st.State == Stopped, st.State == Watching:
		delete(l.failing, st.Stream)
	case st.Err != nil:
		l.failing[st.Stream] = st.Err.Error()
	}
	l.mu.Unlock()
	switch {
	case st.State == Watching && failed:
		l.log.Info("watching again", where(st.Stream)...)
	case st.State != Watching && st.State != Stopped && st.Err != nil && st.Err.Error() != before:
		l.log.Warn("watch failed", append(where(st.Stream), "error", st.Err)...)
	}
}
