package informertest

import (
	"maps"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watcher is one open watch.
type watcher struct {
	s    *Server
	sel  selector
	kind string

	from                uint64 // the version up to which it is told
	cut, closed, marks  uint64 // as they were when it last looked
	raw                 int
	bookmarks, announce bool
}

// watch answers with a watch stream.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, sel selector, kind string) {
	q := r.URL.Query()
	from, _ := strconv.ParseUint(q.Get("resourceVersion"), 10, 64)
	seconds, _ := strconv.Atoi(q.Get("timeoutSeconds"))
	if seconds == 0 {
		seconds = 1800
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush(w)
	o := s.newWatcher(sel, kind, from, q.Get("allowWatchBookmarks") == "true")
	minute := time.NewTicker(bookmarkEvery)
	defer minute.Stop()
	end := time.NewTimer(time.Duration(seconds) * time.Second)
	defer end.Stop()
	last := false
	for {
		frames, changed, over := o.look(last)
		if _, err := w.Write(frames); err != nil {
			return
		}
		flush(w)
		if over || last {
			return
		}
		select {
		case <-changed:
		case <-minute.C:
			o.announce = true
		case <-end.C:
			o.announce, last = true, true
		case <-r.Context().Done():
			return
		}
	}
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func (s *Server) newWatcher(sel selector, kind string, from uint64, bookmarks bool) *watcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &watcher{s: s, sel: sel, kind: kind, from: from, bookmarks: bookmarks,
		cut: s.cut, closed: s.closed, marks: s.marks, raw: len(s.raw)}
}

// look returns what is to be sent now, what to wait for, and whether the watch is over.
func (o *watcher) look(last bool) (frames []byte, changed <-chan struct{}, over bool) {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut != o.cut || s.down {
		panic(http.ErrAbortHandler)
	}
	if s.closed != o.closed {
		return nil, s.changed, true
	}
	if s.mute {
		return nil, s.changed, last
	}
	if o.from < s.oldest {
		return frame("ERROR", status(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")), nil, true
	}
	for _, c := range s.log {
		if c.rv > o.from {
			frames = append(frames, o.event(c)...)
			o.from = c.rv
		}
	}
	for ; o.raw < len(s.raw); o.raw++ {
		if s.raw[o.raw].gvr == o.sel.gvr {
			frames = append(frames, s.raw[o.raw].data...)
		}
	}
	if o.bookmarks && (o.announce || s.marks != o.marks) && o.from <= s.rv {
		o.announce, o.marks, o.from = false, s.marks, s.rv
		frames = append(frames, o.bookmark()...)
	}
	return frames, s.changed, false
}

func (o *watcher) bookmark() []byte {
	return frame("BOOKMARK", encode(map[string]any{
		"kind":       o.kind,
		"apiVersion": o.sel.gvr.GroupVersion().String(),
		"metadata":   map[string]any{"resourceVersion": strconv.FormatUint(o.from, 10), "creationTimestamp": nil},
	}))
}

// event is what a change means for this watch.
func (o *watcher) event(c change) []byte {
	was, is := o.sel.matches(c.id, c.old), o.sel.matches(c.id, c.new)
	switch {
	case is && was:
		return frame("MODIFIED", encode(c.new))
	case is:
		return frame("ADDED", encode(c.new))
	case was: // the previous object, with the version of the event
		gone := maps.Clone(c.old)
		meta := maps.Clone(metaOf(gone))
		meta["resourceVersion"] = strconv.FormatUint(c.rv, 10)
		gone["metadata"] = meta
		return frame("DELETED", encode(gone))
	}
	return nil
}

func frame(kind string, object []byte) []byte {
	return append(append([]byte(`{"type":"`+kind+`","object":`), object...), "}\n"...)
}
