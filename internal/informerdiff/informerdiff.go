// Package informerdiff compares two shared informers through client-go's interfaces.
//
// One is client-go's own, the reference. A Handler records its calls, Differ compares the calls of two handlers, and Views
// compares every answer of two stores. Where client-go does not promise an order, any order is equal:
//
//   - of the objects in a list, the first or a later one,
//   - of the objects that a late handler receives at once,
//   - of the objects that a resync repeats,
//   - of the deletions that a list found.
package informerdiff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// Kind is the method of a handler that was called.
type Kind string

// The methods of cache.ResourceEventHandler.
const (
	Added   Kind = "add"
	Updated Kind = "update"
	Deleted Kind = "delete"
)

// Call is one call of a handler.
type Call struct {
	Kind    Kind
	Key     string
	Initial bool // an add said isInInitialList
	Unknown bool // a delete came as cache.DeletedFinalStateUnknown
	Resync  bool // the old object of an update is the new one, by its pointer

	// Old is nil but for updates; New is the last state for deletes, nil where that was not known.
	Old, New any
}

// Repeats reports whether an update has the known version: a resync, or a list that found nothing new.
func (c Call) Repeats() bool { return c.Kind == Updated && Version(c.Old) == Version(c.New) }

// String omits the contents, to fit a line.
func (c Call) String() string {
	switch {
	case c.Resync:
		return fmt.Sprintf("resync %s@%s", c.Key, Version(c.New))
	case c.Kind == Updated:
		return fmt.Sprintf("update %s@%s to %s", c.Key, Version(c.Old), Version(c.New))
	case c.Initial:
		return fmt.Sprintf("add %s@%s, initial", c.Key, Version(c.New))
	case c.Unknown:
		return fmt.Sprintf("delete %s@%s, final state unknown", c.Key, Version(c.New))
	}
	return fmt.Sprintf("%s %s@%s", c.Kind, c.Key, Version(c.New))
}

// Version returns an object's resource version and UID.
func Version(o any) string {
	if o == nil {
		return "none"
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return fmt.Sprintf("%T", o)
	}
	if m.GetUID() == "" {
		return m.GetResourceVersion()
	}
	return m.GetResourceVersion() + "(" + string(m.GetUID()) + ")"
}

func resourceVersion(o any) string {
	if o == nil {
		return ""
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}

// News returns the calls with something new for the handler. It modifies calls.
func News(calls []Call) []Call { return slices.DeleteFunc(calls, Call.Repeats) }

// PerKey sorts calls by object, within which their order is always promised. It modifies calls.
func PerKey(calls []Call) []Call {
	slices.SortStableFunc(calls, func(a, b Call) int { return strings.Compare(a.Key, b.Key) })
	return calls
}

// Handler records its calls. The zero value is ready; each informer needs its own.
type Handler struct {
	// Before, if set, is called first in every call.
	Before func()

	mu    sync.Mutex
	calls []Call
	seen  map[string]string
}

var _ cache.ResourceEventHandler = (*Handler)(nil)

// OnAdd records the call.
func (h *Handler) OnAdd(o any, initial bool) {
	h.keep(Call{Kind: Added, Key: key(o), Initial: initial, New: o})
}

// OnUpdate records the call.
func (h *Handler) OnUpdate(before, after any) {
	h.keep(Call{Kind: Updated, Key: key(after), Old: before, New: after, Resync: samePointer(before, after)})
}

// OnDelete records the call.
func (h *Handler) OnDelete(o any) {
	c := Call{Kind: Deleted, Key: key(o), New: o}
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		c.Unknown, c.New = true, gone.Obj
	}
	h.keep(c)
}

func (h *Handler) keep(c Call) {
	if h.Before != nil {
		h.Before()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
	if h.seen == nil {
		h.seen = map[string]string{}
	}
	h.seen[c.Key] = resourceVersion(c.New)
}

// Seen returns the resource version in the last call for an object, "" without one.
func (h *Handler) Seen(key string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[key]
}

// Take returns the calls since the last Take, in their order.
func (h *Handler) Take() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls
	h.calls = nil
	return calls
}

func key(o any) string {
	k, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		return err.Error()
	}
	return k
}

func samePointer(a, b any) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	return va.Kind() == reflect.Pointer && vb.Kind() == reflect.Pointer && va.Pointer() == vb.Pointer()
}

// Differ describes how the calls of two handlers differ, "" if they do not. relisted says that the calls come from a list,
// whose objects have no order.
func Differ(theirs, ours []Call, relisted bool) string {
	theirs, ours = inOrder(theirs, relisted), inOrder(ours, relisted)
	for i := range min(len(theirs), len(ours)) {
		a, b := theirs[i], ours[i]
		if a.String() != b.String() {
			return fmt.Sprintf("call %d of %d and %d differs:\n%s", i+1, len(theirs), len(ours), sideBySide(theirs, ours, i))
		}
		if d := content(a.Old, b.Old); d != "" {
			return fmt.Sprintf("call %d, %s: the old object differs: %s", i+1, a, d)
		}
		if d := content(a.New, b.New); d != "" {
			return fmt.Sprintf("call %d, %s: the object differs: %s", i+1, a, d)
		}
	}
	if len(theirs) != len(ours) {
		return fmt.Sprintf("theirs were %d calls, ours %d:\n%s", len(theirs), len(ours), sideBySide(theirs, ours, min(len(theirs), len(ours))))
	}
	return ""
}

// sideBySide prints the calls around the nth.
func sideBySide(theirs, ours []Call, n int) string {
	at := func(calls []Call, i int) string {
		if i < len(calls) {
			return calls[i].String()
		}
		return "-"
	}
	var b strings.Builder
	for i := max(0, n-4); i < min(max(len(theirs), len(ours)), n+8); i++ {
		fmt.Fprintf(&b, "  %3d  %-50s %s\n", i+1, at(theirs, i), at(ours, i))
	}
	return b.String()
}

func content(a, b any) string {
	switch {
	case reflect.TypeOf(a) != reflect.TypeOf(b):
		return fmt.Sprintf("%T and %T", a, b)
	case !reflect.DeepEqual(a, b):
		return fmt.Sprintf("\n  %s\n  %s", dump(a), dump(b))
	}
	return ""
}

// inOrder sorts the runs of calls without a promised order.
func inOrder(calls []Call, relisted bool) []Call {
	calls = slices.Clone(calls)
	for from := 0; from < len(calls); {
		to := from + 1
		for class := classOf(calls[from], relisted); to < len(calls) && class != "" && classOf(calls[to], relisted) == class; {
			to++
		}
		slices.SortStableFunc(calls[from:to], func(a, b Call) int { return strings.Compare(a.Key, b.Key) })
		from = to
	}
	return calls
}

// classOf names the kind of run that a call may be in.
func classOf(c Call, relisted bool) string {
	switch {
	case c.Resync:
		return "resync"
	case c.Unknown:
		return "found gone"
	case c.Initial:
		return "initial"
	case relisted: // including deletions by a filter that no longer passes the object
		return "list"
	}
	return ""
}
