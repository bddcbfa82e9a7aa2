package daemon

import (
	"log/slog"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// BenchmarkItem compares what an update of a pod costs the first pump that gets it: as captured, or from the journal. Not
// included: the query that finds the entry.
func BenchmarkItem(b *testing.B) {
	log := newBacklog(b, 50)
	for range 4 {
		log.add(50, time.Now())
	}
	rules, err := quiet.New()
	if err != nil {
		b.Fatal(err)
	}
	stores, err := openStores(b.Context(), log.Journal, rules, &Options{Log: slog.New(slog.DiscardHandler), Sinks: []deliver.Options{
		{Sink: &counter{}}, {Sink: &counter{}, Include: []deliver.Include{deliver.After}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer stores.close()
	tell := history.New(stores.readers[0], rules)
	var entries []journal.Entry
	var captured []capture.Version
	for e, err := range stores.readers[0].Rows(b.Context(), journal.Query{Quiet: true, OldestFirst: true}) {
		if err != nil {
			b.Fatal(err)
		}
		if !e.Op.Differs() || e.Quiet {
			continue
		}
		var v capture.Version
		if v.BeforeJSON, v.AfterJSON, err = e.Contents(b.Context()); err != nil {
			b.Fatal(err)
		}
		if v.Change, _, err = tell.Make(b.Context(), &e, v.BeforeJSON, v.AfterJSON, true); err != nil {
			b.Fatal(err)
		}
		entries, captured = append(entries, e), append(captured, v)
	}
	for _, g := range stores.groups {
		name := map[bool]string{true: "lean", false: "whole"}[g.maker.lean]
		b.Run(name+"/journal", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if it, err := g.maker.entry(b.Context(), &entries[i%len(entries)]); err != nil || it.Change == nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/captured", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if it, err := g.maker.captured(1, &captured[i%len(captured)]); it.Change == nil || err != nil {
					b.Fatal(it.Err)
				}
			}
		})
	}
}
