package daemon

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/where"
)

// shower is a sink that shows changes.
type shower struct{ *counter }

func (shower) UsesText() bool { return true }

// narrator is a sink that follows objects.
type narrator struct{ *counter }

func (narrator) UsesStory() bool { return true }

// TestOutboxWhole: a sink receives the objects of updates, and their text, if its options need them.
func TestOutboxWhole(t *testing.T) {
	b := newBacklog(t, 1)
	b.add(1, time.Now())
	b.add(1, time.Now())
	rules, err := quiet.New(quiet.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(io.Writer, change.Change) error { return nil }
	story := func(sink.Story, bool, change.Change) sink.Story { return nil }
	filter := func(text string) deliver.Filter {
		expr, err := where.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		return expr
	}
	cases := []struct {
		why   string
		o     deliver.Options
		whole bool
	}{
		{"neither", deliver.Options{Sink: &counter{}}, false},
		{"a filter that reads no objects", deliver.Options{Sink: &counter{}, Where: filter(`op == "updated"`)}, false},
		{"a filter that reads the object before", deliver.Options{Sink: &counter{}, Where: filter(`has(before.data)`)}, true},
		{"a filter that reads the object after", deliver.Options{Sink: &counter{}, Where: filter(`has(after.data)`)}, true},
		{"included", deliver.Options{Sink: &counter{}, Include: []deliver.Include{deliver.Patch}}, true},
		{"shown", deliver.Options{Sink: shower{&counter{}}}, true},
		{"narrated", deliver.Options{Sink: narrator{&counter{}}}, true},
	}
	var sinks []deliver.Options
	for _, tc := range cases {
		sinks = append(sinks, tc.o)
	}
	stores, err := openStores(t.Context(), b.Journal, rules, &Options{Text: text, Story: story, Log: slog.New(slog.DiscardHandler), Sinks: sinks})
	if err != nil {
		t.Fatal(err)
	}
	defer stores.close()
	for i, tc := range cases {
		for item, err := range stores.outboxes[i].Read(context.Background(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			d := item.Event().Data
			switch {
			case item.Seq == 1 && d.After == nil:
				t.Errorf("%s: a creation without its object", tc.why)
			case item.Seq == 2 && (d.Before != nil) != tc.whole, item.Seq == 2 && (d.After != nil) != tc.whole:
				t.Errorf("%s: an update with objects: %v", tc.why, !tc.whole)
			case item.Seq == 2 && len(d.Changes) == 0:
				t.Errorf("%s: an update without changes", tc.why)
			case item.JSON == nil:
				t.Errorf("%s: change %d is encoded by each sink", tc.why, item.Seq)
			case (item.Text != nil) != tc.whole:
				t.Errorf("%s: change %d can be shown: %v", tc.why, item.Seq, !tc.whole)
			case (item.Story != nil) != tc.whole:
				t.Errorf("%s: change %d can be narrated: %v", tc.why, item.Seq, !tc.whole)
			}
		}
	}
}

var (
	_ sink.TextSink  = shower{}
	_ sink.StorySink = narrator{}
)
