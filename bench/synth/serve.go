package synth

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tattler-dev/tattler/bench/gen"
)

// bufferSize is the size of writes to a connection, bytes.
const bufferSize = 64 << 10

// namespaceUID identifies the cluster.
const namespaceUID = "5f0c7a52-0000-4000-8000-000000000001"

func (s *Server) namespace(w http.ResponseWriter, _ *http.Request) {
	begin(w, gen.JSON, false)
	fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q,"resourceVersion":"3"},"spec":{},"status":{"phase":"Active"}}`, namespaceUID)
}

// pod answers with one pod.
func (s *Server) pod(w http.ResponseWriter, r *http.Request) {
	st := s.state()
	i, ok := s.gen.Index(r.PathValue("namespace"), r.PathValue("name"))
	if !ok || i >= s.n {
		refuse(w, http.StatusNotFound, "NotFound", fmt.Sprintf("pods %q not found", r.PathValue("name")))
		return
	}
	f, ok := accepted(r)
	if !ok {
		refuse(w, http.StatusNotAcceptable, "NotAcceptable", "only protobuf and JSON")
		return
	}
	begin(w, f, false)
	b := s.encoders[f].Append(nil, i, st.steps(i), st.podVersion(i))
	if f == gen.JSON {
		fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1",%s`, b[1:])
		return
	}
	start, end := envelope("v1", "Pod", len(b))
	_, _ = w.Write(append(append(start, b...), end...))
}

// pods answers with a list or a watch.
func (s *Server) pods(w http.ResponseWriter, r *http.Request) {
	f, ok := accepted(r)
	q := r.URL.Query()
	switch {
	case !ok:
		refuse(w, http.StatusNotAcceptable, "NotAcceptable", "only protobuf and JSON")
	case q.Get("labelSelector") != "" || q.Get("fieldSelector") != "":
		refuse(w, http.StatusBadRequest, "BadRequest", "no selectors")
	case q.Get("watch") == "true" || q.Get("watch") == "1":
		s.watch(w, r, f)
	default:
		s.list(w, r, f)
	}
}

// page is a part of a list.
type page struct {
	state
	from, to int // pods
	next     string
}

// page returns the requested part of a list. A token is "first pod:number of events".
func (s *Server) page(r *http.Request) (page, bool) {
	p := page{state: s.state(), to: s.n}
	if token := r.URL.Query().Get("continue"); token != "" {
		from, count, _ := strings.Cut(token, ":")
		var err, err2 error
		p.from, err = strconv.Atoi(from)
		p.count, err2 = strconv.Atoi(count)
		if err != nil || err2 != nil || p.from < 0 || p.from > s.n {
			return p, false
		}
	}
	if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 && p.to-p.from > limit {
		p.to = p.from + limit
		p.next = fmt.Sprintf("%d:%d", p.to, p.count)
	}
	return p, true
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, f gen.Format) {
	p, ok := s.page(r)
	if !ok {
		refuse(w, http.StatusGone, "Expired", "the continue parameter is too old")
		return
	}
	begin(w, f, false)
	out := bufio.NewWriterSize(w, bufferSize)
	switch f {
	case gen.JSON:
		s.listJSON(out, p)
	case metadata:
		s.listMetadata(out, p)
	default:
		s.listProtobuf(out, p)
	}
	_ = out.Flush() // the client may have disconnected
}

func (s *Server) listJSON(out *bufio.Writer, p page) {
	fmt.Fprintf(out, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"`, version(p.count))
	if p.next != "" {
		fmt.Fprintf(out, `,"continue":%q,"remainingItemCount":%d`, p.next, s.n-p.to)
	}
	_, _ = out.WriteString(`},"items":[`)
	var b []byte
	for i := p.from; i < p.to; i++ {
		b = s.encoders[gen.JSON].Append(b[:0], i, p.steps(i), p.podVersion(i))
		if i > p.from {
			_ = out.WriteByte(',')
		}
		if _, err := out.Write(b); err != nil {
			return
		}
	}
	_, _ = out.WriteString("]}\n")
}

// listMeta is the metadata of a list, in protobuf.
func (s *Server) listMeta(p page) []byte {
	var meta []byte
	meta = protowire.AppendString(protowire.AppendTag(meta, 2, protowire.BytesType), fmt.Sprint(version(p.count)))
	meta = protowire.AppendString(protowire.AppendTag(meta, 3, protowire.BytesType), p.next)
	if p.next != "" {
		meta = protowire.AppendVarint(protowire.AppendTag(meta, 4, protowire.VarintType), uint64(s.n-p.to))
	}
	return meta
}

// listMetadata writes a PartialObjectMetadataList. It has the first field of each pod, which is the metadata
// in both messages.
func (s *Server) listMetadata(out *bufio.Writer, p page) {
	list := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), s.listMeta(p))
	var b []byte
	for i := p.from; i < p.to; i++ {
		b = s.encoders[gen.Protobuf].Append(b[:0], i, p.steps(i), p.podVersion(i))
		_, _, n := protowire.ConsumeField(b)
		list = protowire.AppendBytes(protowire.AppendTag(list, 2, protowire.BytesType), b[:n])
	}
	start, end := envelope("meta.k8s.io/v1", "PartialObjectMetadataList", len(list))
	for _, part := range [][]byte{start, list, end} {
		_, _ = out.Write(part)
	}
}

func (s *Server) listProtobuf(out *bufio.Writer, p page) {
	e := s.encoders[gen.Protobuf]
	meta := s.listMeta(p)
	size := itemSize(len(meta))
	for i := p.from; i < p.to; i++ {
		size += itemSize(e.Size(i, p.steps(i)))
	}
	start, end := envelope("v1", "PodList", size)
	_, _ = out.Write(protowire.AppendBytes(protowire.AppendTag(start, 1, protowire.BytesType), meta))
	var b, head []byte
	for i := p.from; i < p.to; i++ {
		b = e.Append(b[:0], i, p.steps(i), p.podVersion(i))
		head = protowire.AppendVarint(protowire.AppendTag(head[:0], 2, protowire.BytesType), uint64(len(b)))
		_, _ = out.Write(head)
		if _, err := out.Write(b); err != nil {
			return
		}
	}
	_, _ = out.Write(end)
}

// watch responds with a watch, after a streaming list if the client requests one.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, f gen.Format) {
	q := r.URL.Query()
	at, ok := since(r)
	if !ok {
		refuse(w, http.StatusBadRequest, "BadRequest", "resourceVersion is no number")
		return
	}
	_, closed, _ := s.look() // before the client sees the response's header
	forgotten := at < s.oldestEvent()
	begin(w, f, true)
	control := http.NewResponseController(w)
	_ = control.Flush()
	out := &frames{w: bufio.NewWriterSize(w, bufferSize), format: f, encoder: s.encoders[f]}
	if q.Get("sendInitialEvents") == "true" {
		if at, ok = s.initial(out); !ok {
			return
		}
	} else if forgotten {
		_ = out.expired()
		_ = out.w.Flush()
		return
	}
	var marks <-chan time.Time
	ends := after(q.Get("timeoutSeconds"), 0)
	if q.Get("allowWatchBookmarks") == "true" {
		tick := time.NewTicker(bookmarkEvery)
		defer tick.Stop()
		marks = tick.C
	}
	last := after(q.Get("timeoutSeconds"), 2*time.Second) // the bookmark shortly before the end
	for {
		st, now, changed := s.look()
		if now != closed {
			return
		}
		for ; at < st.count; at++ {
			if out.pod(st.event(at)) != nil {
				return
			}
		}
		_ = out.w.Flush()
		if control.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-ends:
			return
		case <-last:
			if marks != nil {
				_ = out.bookmark(version(at), false)
			}
		case <-marks:
			_ = out.bookmark(version(at), false)
		case <-changed:
		}
	}
}

// initial writes all pods and the bookmark after them. It returns the number of events that they include.
func (s *Server) initial(out *frames) (count int, ok bool) {
	st := s.state()
	for i := range s.n {
		if out.pod(event{"ADDED", i, st.steps(i), st.podVersion(i)}) != nil {
			return 0, false
		}
	}
	return st.count, out.bookmark(version(st.count), true) == nil
}

func (s *Server) oldestEvent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.oldest
}

// look returns the state, the number of times that watches were ended, and a channel that closes when either changes.
func (s *Server) look() (state, int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return state{s.storms, s.count, s.n}, s.closed, s.changed
}

// after fires some time before a number of seconds has passed, or never without a number.
func after(seconds string, before time.Duration) <-chan time.Time {
	n, err := strconv.Atoi(seconds)
	if err != nil || n <= 0 {
		return nil
	}
	return time.After(max(time.Duration(n)*time.Second-before, time.Duration(n)*time.Second/2))
}
