package informertest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bookmarkEvery is the interval of an API server's watch cache.
const bookmarkEvery = time.Minute

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.RequestURI())
	hook, down := s.hook, s.down
	s.mu.Unlock()
	if down {
		panic(http.ErrAbortHandler)
	}
	if hook != nil && hook(w, r) {
		return
	}
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		s.discover(w, r.URL.Path == "/api")
		return
	}
	at, ok := parsePath(r.URL.Path)
	s.mu.Lock()
	kind, served := s.kinds[at.gvr]
	s.mu.Unlock()
	if !ok || !served {
		Refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
		return
	}
	if at.name != "" {
		s.one(w, at)
		return
	}
	sel, err := newSelector(at, r.URL.Query().Get("labelSelector"), r.URL.Query().Get("fieldSelector"))
	if err != nil {
		Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if r.URL.Query().Get("watch") == "true" {
		s.watch(w, r, sel, kind)
		return
	}
	s.list(w, r, sel, kind)
}

// path names a collection, or one of its objects.
type path struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

func parsePath(p string) (path, bool) {
	parts := strings.Split(strings.Trim(p, "/"), "/")
	var at path
	switch {
	case len(parts) > 2 && parts[0] == "api":
		at.gvr.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		at.gvr.Group, at.gvr.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return at, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		at.namespace, parts = parts[1], parts[2:]
	}
	at.gvr.Resource = parts[0]
	if len(parts) == 2 {
		at.name = parts[1]
	}
	return at, len(parts) <= 2
}

// Refuse answers with a Status.
func Refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_, _ = w.Write(status(code, reason, message))
}

func status(code int32, reason metav1.StatusReason, message string) []byte {
	return encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Code:     code,
		Reason:   reason,
		Message:  message,
	})
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("informertest: an object that is no JSON: %v", err))
	}
	return b
}

// selector says which objects a request is about.
type selector struct {
	path
	labels labels.Selector
	fields fields.Selector
}

func newSelector(at path, l, f string) (sel selector, err error) {
	sel.path = at
	if sel.labels, err = labels.Parse(l); err != nil {
		return sel, err
	}
	sel.fields, err = fields.ParseSelector(f)
	return sel, err
}

func (sel *selector) matches(k id, o map[string]any) bool {
	if o == nil || k.gvr != sel.gvr || sel.namespace != "" && k.namespace != sel.namespace {
		return false
	}
	set := labels.Set{}
	given, _ := metaOf(o)["labels"].(map[string]any)
	for name, v := range given {
		set[name] = fmt.Sprint(v)
	}
	return sel.labels.Matches(set) &&
		sel.fields.Matches(fields.Set{"metadata.name": k.name, "metadata.namespace": k.namespace})
}

// list answers with one page.
func (s *Server) list(w http.ResponseWriter, r *http.Request, sel selector, kind string) {
	body, ok := s.page(r, sel, kind)
	if !ok {
		Refuse(w, http.StatusGone, metav1.StatusReasonExpired, "The provided continue parameter is too old")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

func (s *Server) page(r *http.Request, sel selector, kind string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest, rv := s.selected(sel), s.rv
	token := r.URL.Query().Get("continue")
	if token != "" {
		var ok bool
		if rest, ok = s.pages[token]; !ok {
			return nil, false
		}
		rv = s.pageRV[token]
	}
	page, next := rest, ""
	if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 && len(rest) > limit {
		page = rest[:limit]
		next = fmt.Sprintf("token-%d-%d", rv, len(rest))
		s.pages[next], s.pageRV[next] = rest[limit:], rv
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatUint(rv, 10), Continue: next}
	items := make([]any, len(page))
	for i, o := range page {
		items[i] = o.fields
	}
	if sel.gvr.Group != "" { // as custom resources: keys sorted, items typed
		return encode(map[string]any{"apiVersion": sel.gvr.GroupVersion().String(), "kind": kind + "List",
			"items": items, "metadata": meta}), true
	}
	for i, o := range page { // as built-in kinds: metadata first, items bare
		bare := maps.Clone(o.fields)
		delete(bare, "apiVersion")
		delete(bare, "kind")
		items[i] = bare
	}
	return encode(struct {
		Kind       string          `json:"kind"`
		APIVersion string          `json:"apiVersion"`
		Metadata   metav1.ListMeta `json:"metadata"`
		Items      []any           `json:"items"`
	}{kind + "List", sel.gvr.GroupVersion().String(), meta, items}), true
}

// selected returns the objects in the order of their keys; s.mu is held.
func (s *Server) selected(sel selector) []object {
	var all []object
	for k, o := range s.objects {
		if sel.matches(k, o.fields) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return all
}
