package log

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/history/historytest"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
)

// BenchmarkLastStories measures tattler log, without flags and for failures, with a hundred pods without owners that change each
// second: each of three hundred crashes again and again.
func BenchmarkLastStories(b *testing.B) {
	const perSecond, seconds, pods = 100, 900, 300
	path := filepath.Join(b.TempDir(), "journal.db")
	j, err := journal.Open(b.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		b.Fatal(err)
	}
	kind := journal.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	object := func(pod, n int, at time.Time) []byte {
		env := make([]any, 60)
		for i := range env {
			env[i] = obj{"name": fmt.Sprint("VARIABLE_", i), "value": fmt.Sprint("some value of it ", i)}
		}
		raw, err := json.Marshal(obj{"apiVersion": "v1", "kind": "Pod", "metadata": obj{"name": fmt.Sprint("p", pod), "namespace": "shop", "uid": fmt.Sprint(pod)},
			"spec": obj{"containers": []any{obj{"name": "app", "env": env}}}, "status": obj{"phase": "Running", "beats": n, "containerStatuses": []any{obj{
				"name": "app", "restartCount": n / (6 * pods), "ready": false, "state": obj{"waiting": obj{"reason": "CrashLoopBackOff"}},
				"lastState": obj{"terminated": obj{"exitCode": 1, "finishedAt": at.Truncate(time.Minute).UTC().Format(time.RFC3339)}},
			}}}})
		if err != nil {
			b.Fatal(err)
		}
		return raw
	}
	last := make([][]byte, pods)
	for second := range seconds {
		at := start.Add(time.Duration(second) * time.Second)
		batch := journal.Batch{
			Stream: journal.Stream{GroupResource: "pods"},
			Head:   journal.Head{Version: fmt.Sprint(second + 1), Epoch: 1, Live: true, EverLive: true, At: at},
		}
		for i := range perSecond {
			n := second*perSecond + i
			pod := n % pods
			r := journal.Row{Meta: journal.Meta{
				Op: event.Updated, Kind: kind, Namespace: "shop", Name: fmt.Sprint("p", pod), UID: fmt.Sprint(pod), ResourceVersion: fmt.Sprint(n + 1),
				Time: at, At: at, Manager: "kubelet",
			}, Before: last[pod], After: object(pod, n, at)}
			if r.Before == nil {
				r.Op = event.Created
			}
			last[pod] = r.After
			batch.Rows = append(batch.Rows, r)
		}
		historytest.Judge(batch.Rows)
		if _, err := j.Append(b.Context(), []journal.Batch{batch}); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	for name, o := range map[string]Options{
		"last": {Limit: 50}, "failures": {Limit: 20, Options: selection.Options{Severities: []string{"failure"}}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var out, said bytes.Buffer
				o := o
				o.IO, o.Output = &terminal.IO{Out: &out, Err: &said, Width: func() int { return 0 }}, text
				o.Now = func() time.Time { return start.Add(seconds * time.Second) }
				o.Past.Path = path
				if err := Run(b.Context(), &o); err != nil {
					b.Fatal(err)
				}
				if out.Len() == 0 {
					b.Fatal("nothing is shown")
				}
			}
		})
	}
}
