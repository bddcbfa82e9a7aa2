package sinktest

import (
	"fmt"
	"io"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
)

// objects is the number of objects; consecutive changes belong to them in turn.
const objects = 3

// Change returns the n-th change of a made-up cluster, an update of one of a few deployments. It is the same in every
// process.
func Change(n int) *change.Change {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
	name := fmt.Sprint("web-", n%objects)
	image := func(n int) map[string]any {
		return map[string]any{
			"kind": "Deployment", "metadata": map[string]any{"name": name, "resourceVersion": fmt.Sprint(1000 + n)},
			"spec": map[string]any{"image": fmt.Sprint("app:", n), "note": "a < b & c \u00fc"},
		}
	}
	path := diff.Path{{Kind: diff.Field, Name: "spec"}, {Kind: diff.Field, Name: "image"}}
	return &change.Change{
		Meta: change.Meta{
			Op: event.Updated, Kind: change.Kind{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true},
			Namespace: "shop", Name: name, UID: "uid-" + name, ResourceVersion: fmt.Sprint(1000 + n), Time: at, At: at,
		},
		Fields: []change.FieldChange{{
			Change:  diff.Change{Path: path, Op: diff.Replace, From: fmt.Sprint("app:", n-objects), To: fmt.Sprint("app:", n)},
			Manager: "kubectl-set",
		}},
		Managers: []event.Manager{{Manager: "kubectl-set", Operation: "Update"}},
		Before:   image(n - objects), After: image(n),
	}
}

// Event returns the event of the n-th change.
func Event(n int) *event.Event {
	e := change.Whole("prod", Change(n))
	return &e
}

// Item returns the n-th change as a store holds it. Its sequence number is n+1.
func Item(n int) deliver.Item {
	e := Event(n)
	return deliver.Item{Seq: int64(n + 1), Change: Change(n), Event: func() *event.Event { return e }, Text: func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\n", text(e))
		return err
	}}
}

func text(e *event.Event) string { return "changed " + e.ID }

// message returns the n-th event as a pump would send it, uncut.
func message(n int) sink.Message {
	item := Item(n)
	e := item.Event()
	body, err := e.MarshalJSON()
	if err != nil {
		panic(err) // a bug in the test: we made the event
	}
	return sink.Message{ID: e.ID, Key: e.PartitionKey, Body: body, Event: e, Text: item.Text}
}

// Messages returns count messages, from the n-th event on.
func Messages(n, count int) []sink.Message {
	var out []sink.Message
	for i := range count {
		out = append(out, message(n+i))
	}
	return out
}
