package daemon

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/sink"
)

// keeper is a sink that keeps the JSON of updates by id.
type keeper struct {
	mu     sync.Mutex
	events map[string]string
}

func (*keeper) String() string              { return "keeper" }
func (*keeper) Close(context.Context) error { return nil }

func (k *keeper) Send(_ context.Context, ms []sink.Message) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range ms {
		if m.Event.Data.Op == event.Updated {
			k.events[m.ID] = string(m.Body)
		}
	}
	return len(ms), nil
}

// TestOneForm: a change is listed as it was delivered, although the API server had no merge keys at first and other ones later.
func TestOneForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir, got := newRig(t), t.TempDir(), &keeper{events: map[string]string{}}
		key := ""
		r.server.Intercept(func(w http.ResponseWriter, q *http.Request) bool {
			switch {
			case q.URL.Path != "/openapi/v3/api/v1":
				return false
			case key == "":
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
				_, _ = fmt.Fprintf(w, `{"components":{"schemas":{"cm":{"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"ConfigMap"}],
					"properties":{"list":{"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[%q],"items":{"properties":{"a":{},"b":{}}}}}}}}}`, key)
			}
			return true
		})
		put := func(b string) {
			list := []any{map[string]any{"a": "1", "b": b}, map[string]any{"a": "2", "b": b + b}}
			r.server.Put(configMaps, "shop", "web", map[string]any{"list": list})
		}
		put("x")
		for _, key = range []string{"", "a", "b", "a"} {
			d := r.daemon(dir, Options{Sinks: []deliver.Options{{Name: "keeper", Sink: got, From: deliver.Beginning}}})
			for _, b := range []string{"y" + key, "z" + key} {
				put(b)
				d.pass(time.Minute) // in the bubble
			}
			d.stop()
		}
		reader, err := journal.OpenReader(t.Context(), filepath.Join(dir, "journal.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		tell, listed, unkeyed := history.New(reader, r.rules), map[string]string{}, 0
		for e, err := range reader.Rows(t.Context(), journal.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			c, err := tell.Change(t.Context(), &e)
			if err != nil {
				t.Fatal(err)
			}
			if c.Op != event.Updated {
				continue
			}
			if c.Unkeyed {
				unkeyed++
			}
			body, err := change.Event("test", &c).MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			listed[e.ID] = string(body)
		}
		if d := cmp.Diff(got.events, listed); d != "" || len(listed) != 8 || unkeyed != 2 {
			t.Errorf("%d updates, %d without keys (-delivered +listed):\n%s", len(listed), unkeyed, d)
		}
	})
}
