package torture

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

// hands are concurrent writers, each under several manager names, whether the server is available or not.
type hands struct {
	taken atomic.Int64 // writes accepted by the server
	stop  func()       // returns once the last write was answered or abandoned
}

// The range of names: so many per kind and namespace, so that names are reused.
const (
	writers = 4
	names   = 10
)

// newHands starts hands that make at most pace writes a second.
func newHands(ctx context.Context, w *watcher, rng *rand.Rand, pace float32, namespaces ...string) (*hands, error) {
	ctx, cancel := context.WithCancel(ctx)
	h := &hands{}
	limit := flowcontrol.NewTokenBucketRateLimiter(pace, writers)
	var wg sync.WaitGroup
	for range writers {
		a, err := newAPI()
		if err != nil {
			cancel()
			return nil, err
		}
		one := &hand{api: a, watcher: w, rng: rand.New(rand.NewPCG(rng.Uint64(), 2)), namespaces: namespaces}
		wg.Go(func() {
			for limit.Wait(ctx) == nil {
				if one.write(ctx) == nil {
					h.taken.Add(1)
				}
			}
		})
	}
	h.stop = func() { cancel(); wg.Wait() }
	return h, nil
}

// some waits until the server has accepted n more writes.
func (h *hands) some(ctx context.Context, n int64) error {
	until := h.taken.Load() + n
	return clustertest.Poll(ctx, pollInterval, func() error {
		if left := until - h.taken.Load(); left > 0 {
			return fmt.Errorf("%d more writes must be accepted", left)
		}
		return nil
	})
}

// hand is one writer.
type hand struct {
	api        *api
	watcher    *watcher
	rng        *rand.Rand
	namespaces []string
}

var managers = []string{"one", "two", "three"}

// write does something to a random object. Refusals are normal: it may already exist, or not exist.
func (h *hand) write(ctx context.Context) error {
	r := kinds[h.rng.IntN(len(kinds))]
	ns := h.namespaces[h.rng.IntN(len(h.namespaces))]
	name := fmt.Sprintf("o%d", h.rng.IntN(names))
	switch n := h.rng.IntN(100); {
	case n < 25:
		return h.create(ctx, r, ns, name)
	case n < 50:
		return h.patch(ctx, r, ns, name, "", "merge", h.some(r))
	case n < 65:
		whole := h.object(r, name)
		return h.patch(ctx, r, ns, name, "", "apply", whole)
	case n < 75:
		if r == deployments {
			return h.patch(ctx, r, ns, name, "status", "merge", h.status())
		}
		return h.patch(ctx, r, ns, name, "", "merge", fields{"metadata": fields{"labels": fields{"l": h.word(), "m": h.orNull()}}})
	case n < 80:
		return h.patch(ctx, r, ns, name, "", "merge", fields{"metadata": fields{"finalizers": h.finalizers()}})
	case n < 90:
		return h.delete(ctx, r, ns, name)
	case n < 96: // recreate it with another UID
		if err := h.delete(ctx, r, ns, name); err != nil && !isRefusal(err) {
			return err
		}
		return h.create(ctx, r, ns, name)
	default: // create and delete
		name = "blip-" + h.word()
		if err := h.create(ctx, r, ns, name); err != nil {
			return err
		}
		return h.delete(ctx, r, ns, name)
	}
}

func (h *hand) word() string { return fmt.Sprintf("%08x", h.rng.Uint32()) }

func (h *hand) orNull() any {
	if h.rng.IntN(2) == 0 {
		return nil
	}
	return h.word()
}

func (h *hand) finalizers() []string {
	if h.rng.IntN(3) == 0 {
		return []string{"torture.tattler.dev/wait"}
	}
	return []string{}
}

// text is mostly short.
func (h *hand) text() string {
	if h.rng.IntN(40) == 0 {
		return strings.Repeat(h.word()+" ", 2000)
	}
	return h.word()
}

// some returns random fields of a kind.
func (h *hand) some(r resource) fields {
	switch r {
	case configMaps:
		return fields{"data": fields{"k" + fmt.Sprint(h.rng.IntN(4)): h.orNull(), "text": h.text(), "password": h.word(), "hush": h.word()}}
	case secrets:
		value := func() string { return base64.StdEncoding.EncodeToString([]byte(h.word())) }
		s := fields{"data": fields{"k" + fmt.Sprint(h.rng.IntN(4)): value(), "same": "c2FtZQ=="}}
		if h.rng.IntN(3) == 0 {
			s["metadata"] = fields{"annotations": fields{"note": h.word()}}
		}
		return s
	case deployments:
		labels := fields{"app": "a"}
		return fields{"spec": fields{"replicas": h.rng.IntN(5), "selector": fields{"matchLabels": labels}, "template": fields{
			"metadata": fields{"labels": labels},
			"spec": fields{"containers": []fields{
				{"name": "app", "image": "app:" + h.word(), "env": []fields{{"name": "DB_PASSWORD", "value": h.word()}, {"name": "MODE", "value": h.word()}}},
				{"name": "aside", "image": "aside:" + fmt.Sprint(h.rng.IntN(3))},
			}},
		}}}
	}
	return fields{"spec": fields{"n": h.rng.IntN(1000), "big": 1<<60 + h.rng.Int64N(1000), "part": 0.5, "list": []any{h.word(), nil, true}, "text": h.text()}}
}

func (h *hand) status() fields {
	n := h.rng.IntN(4)
	return fields{"status": fields{"observedGeneration": h.rng.IntN(10), "replicas": n, "conditions": []fields{{
		"type": "Progressing", "status": "True", "reason": "R", "message": "m" + fmt.Sprint(n),
		"lastUpdateTime": fmt.Sprintf("2026-01-01T00:00:%02dZ", h.rng.IntN(60)), "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}}
}

// object is a whole object.
func (h *hand) object(r resource, name string) fields {
	o := h.some(r)
	meta, _ := o["metadata"].(fields)
	if meta == nil {
		meta = fields{}
	}
	meta["name"] = name
	o["apiVersion"], o["kind"], o["metadata"] = r.apiVersion(), r.kind, meta
	return o
}

// manager is a random field manager, as a query.
func (h *hand) manager() string { return "?fieldManager=" + managers[h.rng.IntN(len(managers))] }

func (h *hand) create(ctx context.Context, r resource, ns, name string) error {
	o := h.object(r, name)
	dropNulls(o)
	return h.send(ctx, "POST", r, r.path(ns, "")+h.manager(), "application/json", o, true)
}

// patch merges or applies.
func (h *hand) patch(ctx context.Context, r resource, ns, name, subresource, how string, o fields) error {
	path := r.path(ns, name)
	if subresource != "" {
		path += "/" + subresource
	}
	path += h.manager()
	if how == "apply" {
		dropNulls(o)
		path += "&force=true"
	}
	return h.send(ctx, "PATCH", r, path, map[string]string{
		"merge": "application/merge-patch+json", "apply": "application/apply-patch+yaml", // JSON is YAML
	}[how], o, subresource == "" && !finalizersOnly(o))
}

// finalizersOnly reports whether a patch has nothing but finalizers, which the object may have already.
func finalizersOnly(o fields) bool {
	meta, _ := o["metadata"].(fields)
	return len(o) == 1 && len(meta) == 1 && meta["finalizers"] != nil
}

// delete deletes an object and removes its finalizers.
func (h *hand) delete(ctx context.Context, r resource, ns, name string) error {
	if _, err := h.api.do(ctx, "DELETE", r.path(ns, name), "", nil); err != nil {
		return err
	}
	if h.rng.IntN(2) == 0 {
		return nil
	}
	err := h.patch(ctx, r, ns, name, "", "merge", fields{"metadata": fields{"finalizers": []string{}}})
	if isRefusal(err, 404) {
		return nil
	}
	return err
}

// send sends a write. If it certainly changes the object, the version in the response was written after it was sent.
func (h *hand) send(ctx context.Context, method string, r resource, path, contentType string, o fields, changes bool) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	sent := time.Now()
	answer, err := h.api.do(ctx, method, path, contentType, body)
	if err != nil {
		return err
	}
	if !changes {
		sent = time.Time{}
	}
	h.watcher.answered(r, sent, answer)
	return nil
}

// dropNulls removes nulls, which only a merge may contain.
func dropNulls(o fields) {
	for k, v := range o {
		switch v := v.(type) {
		case nil:
			delete(o, k)
		case fields:
			dropNulls(v)
		}
	}
}
