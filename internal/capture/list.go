package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

var errNoObject = errors.New("not an object")

// Pages are small: Helm's Secrets have up to a megabyte each, and a page is in memory at once.
const (
	pageSize    = 250
	pageOfLarge = 25
)

// Seen is called with an object: decoded as by jsonmap.DecodeObject, with managed fields, and redacted. named reports
// whether the user asked for the object, other than through its owner. The object belongs to the callee.
type Seen func(r Resource, obj map[string]any, named bool)

// Listing is the result of a List.
type Listing struct {
	// Kinds counts the kinds that were listed, at least in some namespaces, and Objects their objects.
	Kinds, Objects int
	// Hidden, Forbidden, Failing and Unmatched are as in Ready. Absent are the
	// requested objects that do not exist, as TYPE/NAME.
	Hidden             []string
	Forbidden, Failing []Refusal
	Unmatched, Absent  []string
}

// List lists once what Run would watch, page by page, and passes each object to seen. It needs the right to list only.
// A kind that may not be listed is reported and skipped. Call it on a Watcher that does not run.
func (w *Watcher) List(ctx context.Context, seen Seen) (*Listing, error) {
	catalog, err := w.prepare(ctx)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.catalog = catalog
	ts := w.plan(catalog)
	l := &Listing{Hidden: slices.Sorted(maps.Keys(w.hidden)), Unmatched: w.unmatched}
	w.mu.Unlock()
	for _, t := range ts {
		w.listKind(ctx, t, l, seen)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("list %s: %w", t.GroupResource(), ctx.Err())
		}
	}
	return l, nil
}

// ListAlso lists a further kind in the namespaces of the first scope, without its other conditions. The Watcher may
// run. A kind that the server does not serve has no objects.
func (w *Watcher) ListAlso(ctx context.Context, group, resource string, seen Seen) *Listing {
	w.mu.Lock()
	catalog := w.catalog
	w.mu.Unlock()
	l := &Listing{}
	if catalog == nil {
		return l
	}
	r, ok := catalog.Find(group, resource, "")
	if !ok {
		return l
	}
	w.listKind(ctx, target{Resource: r, scope: &Scope{Namespaces: w.scopes[0].Namespaces}}, l, seen)
	return l
}

// Selects reports whether the Watcher selects a kind, once Run or List has run discovery.
func (w *Watcher) Selects(group, resource string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.catalog != nil && slices.ContainsFunc(w.plan(w.catalog), func(t target) bool {
		return t.Group == group && t.Resource.Resource == resource
	})
}

// listKind lists a kind, stream by stream as it would be watched.
func (w *Watcher) listKind(ctx context.Context, t target, l *Listing, seen Seen) {
	k := w.newKind(t, false)
	refused := map[string][]Refusal{}
	listed := 0
	found := map[string]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(k.streams), compareStreams) {
		n, err := w.pages(ctx, k, key, func(obj map[string]any) {
			name, _ := change.Metadata(obj)["name"].(string)
			found[name] = true
			seen(t.Resource, obj, k.all() || slices.Contains(k.names, name))
		})
		l.Objects += n
		if err == nil {
			listed++
			continue
		}
		class := "failing"
		if apierrors.IsForbidden(err) {
			class = "forbidden"
		}
		refused[class] = append(refused[class], Refusal{Resource: t.Resource, Err: err, Namespaces: []string{key.namespace}})
	}
	if listed > 0 {
		l.Kinds++
	}
	for _, name := range k.names {
		if listed > 0 && len(refused) == 0 && !found[name] {
			l.Absent = append(l.Absent, t.Resource.Resource+"/"+name)
		}
	}
	for class, rs := range refused {
		one := Refusal{Resource: t.Resource, Err: rs[0].Err}
		if listed > 0 {
			for _, r := range rs {
				one.Namespaces = append(one.Namespaces, r.Namespaces...)
			}
		}
		if class == "forbidden" {
			l.Forbidden = append(l.Forbidden, one)
		} else {
			l.Failing = append(l.Failing, one)
		}
	}
}

// pages lists one stream. It returns how many objects it passed on.
func (w *Watcher) pages(ctx context.Context, k *kind, key streamKey, each func(obj map[string]any)) (n int, err error) {
	sel := k.selections[key.source]
	limit := pageSize
	if gr := k.GroupResource(); gr == "secrets" || gr == "configmaps" {
		limit = pageOfLarge
	}
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if sel.Labels != "" {
		query.Set("labelSelector", sel.Labels)
	}
	if sel.Fields != "" {
		query.Set("fieldSelector", sel.Fields)
	}
	path := w.cluster.ResourcePath(k.GVR(), key.namespace, "")
	for {
		body, err := w.cluster.Get(ctx, path, query)
		if err != nil {
			return n, err
		}
		next, count, err := w.page(k, sel, body, each)
		n += count
		if err != nil || next == "" {
			return n, err
		}
		query.Set("continue", next)
	}
}

// page passes on the objects of one page, and returns the token of the next.
func (w *Watcher) page(k *kind, sel informer.Selection, body []byte, each func(obj map[string]any)) (next string, n int, err error) {
	if !json.Valid(body) {
		return "", 0, fmt.Errorf("decode the list of %s: invalid JSON", k.GroupResource())
	}
	for name, value := range jsonmap.Members(body) {
		switch name {
		case "metadata":
			var meta struct {
				Continue string `json:"continue"`
			}
			if err := json.Unmarshal(value, &meta); err != nil {
				return "", n, fmt.Errorf("decode the list of %s: %w", k.GroupResource(), err)
			}
			next = meta.Continue
		case "items":
			for raw := range jsonmap.Elements(value) {
				obj, err := w.redacted(k, raw)
				if err != nil {
					return "", n, fmt.Errorf("decode an object of %s: %w", k.GroupResource(), err)
				}
				ns, _ := change.Metadata(obj)["namespace"].(string)
				objName, _ := change.Metadata(obj)["name"].(string)
				if sel.Keep != nil && !sel.Keep(ns, objName) {
					continue
				}
				n++
				each(obj)
			}
		}
	}
	return next, n, nil
}

// redacted decodes a listed object and hides its secret values, as for a watched one.
func (w *Watcher) redacted(k *kind, raw []byte) (map[string]any, error) {
	safe, err := w.o.Redactor.Redact(k.GroupResource(), raw)
	if err != nil {
		return nil, err
	}
	obj, _, err := jsonmap.DecodeObject(safe)
	if err == nil && obj == nil {
		err = errNoObject
	}
	return obj, err
}
