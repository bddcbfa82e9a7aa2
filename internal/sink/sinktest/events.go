package sinktest

import (
	"fmt"
	"io"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
)

// objects is the number of objects; consecutive events belong to them in turn.
const objects = 3

// Event returns the n-th event of a made-up cluster, an update of one of a few deployments. It is the same in every
// process.
func Event(n int) *event.Event {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
	name := fmt.Sprint("web-", n%objects)
	image := func(n int) map[string]any {
		return map[string]any{
			"kind": "Deployment", "metadata": map[string]any{"name": name, "resourceVersion": fmt.Sprint(1000 + n)},
			"spec": map[string]any{"image": fmt.Sprint("app:", n), "note": "a < b & c \u00fc"},
		}
	}
	e := event.New("prod", at, event.Data{
		Op: event.Updated,
		Resource: event.Resource{
			Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespace: "shop",
			Name: name, UID: "uid-" + name, ResourceVersion: fmt.Sprint(1000 + n),
		},
		Changes:  []event.Change{{Path: "spec.image", Op: "replace", From: fmt.Sprint("app:", n-objects), To: fmt.Sprint("app:", n), Manager: "kubectl-set"}},
		Managers: []event.Manager{{Manager: "kubectl-set", Operation: "Update"}},
		Before:   image(n - objects), After: image(n),
		Observed: event.Observed{At: at},
	})
	return &e
}

// Item returns the n-th event as a store holds it. Its sequence number is n+1.
func Item(n int) deliver.Item {
	e := Event(n)
	return deliver.Item{Seq: int64(n + 1), Event: e, Text: func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\n", text(e))
		return err
	}}
}

func text(e *event.Event) string { return "changed " + e.ID }

// message returns the n-th event as a pump would send it, uncut.
func message(n int) sink.Message {
	item := Item(n)
	body, err := item.Event.MarshalJSON()
	if err != nil {
		panic(err) // a bug in the test: we made the event
	}
	return sink.Message{ID: item.Event.ID, Key: item.Event.PartitionKey, Body: body, Event: item.Event, Text: item.Text}
}

// Messages returns count messages, from the n-th event on.
func Messages(n, count int) []sink.Message {
	var out []sink.Message
	for i := range count {
		out = append(out, message(n+i))
	}
	return out
}
