package stages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/bench/sinks"
	"github.com/tattler-dev/tattler/bench/synth"
	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/openapi"
	"github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/sink/file"
)

const (
	resource = "pods"
	cluster  = "bench"
	// batch is the number of changes in one transaction: as many as arrive meanwhile, up to 500.
	batch = 100
)

// kind is the kind of all objects.
var kind = change.Kind{Version: "v1", Resource: resource, Kind: "Pod", Namespaced: true}

// stage is a part of the way.
type stage struct {
	name string
	// aside marks a part of another stage, or what the recorder does not do: later stages do not need it.
	aside bool
	// first marks a stage that the objects' first versions pass, too.
	first bool
	begin func(l *line) error
	run   func(l *line, items []*item) error
}

// stages are in the order of the way.
var stages = []stage{
	{name: "cut", first: true, run: cut},
	{name: "drop", aside: true, run: drop},
	{name: "sum", run: sum},
	{name: "redact", first: true, begin: beginRedact, run: hide},
	{name: "pack", first: true, run: pack},
	{name: "unpack", run: unpack},
	{name: "decode", run: decode},
	{name: "compare", aside: true, begin: beginCompare, run: compare},
	{name: "build", begin: beginBuild, run: build},
	{name: "encode", aside: true, begin: beginEncode, run: encode},
	{name: "append", begin: beginAppend, run: appendRows},
	{name: "deliver", begin: beginDeliver, run: send},
}

// line is what the stages use.
type line struct {
	ctx            context.Context //nolint:containedctx // of the measurement
	dir            string
	seeds, updates []*item

	key      []byte
	steps    *feed.Steps
	redactor *redact.Redactor
	schema   diff.Schema
	builder  change.Builder
	encoder  *journal.Encoder
	journal  *journal.Journal
	store    *sinks.Store
	sink     *sinks.Watched
	sent     int
	stored   int // bytes, so that no work is for nothing
	ends     []func() error
}

// open reads a stream and returns the line for it, with a new folder.
func open(ctx context.Context, dir string, pods, updates int) (*line, error) {
	l := &line{ctx: ctx, key: redact.NewRandomKey()}
	l.steps = feed.NewSteps(l.key)
	var err error
	if l.seeds, l.updates, err = read(dir, pods, updates); err != nil {
		return nil, err
	}
	if l.dir, err = os.MkdirTemp(dir, "line-"); err != nil {
		return nil, err
	}
	l.ends = append(l.ends, func() error { return os.RemoveAll(l.dir) })
	return l, nil
}

func (l *line) close() error {
	var errs []error
	for i := len(l.ends) - 1; i >= 0; i-- {
		errs = append(errs, l.ends[i]())
	}
	return errors.Join(errs...)
}

// each runs a function on each item.
func each(items []*item, do func(it *item) error) error {
	for _, it := range items {
		if err := do(it); err != nil {
			return err
		}
	}
	return nil
}

// cut cuts the objects out of the watch's bytes.
func cut(l *line, items []*item) error {
	n := 0
	for o, err := range l.steps.Cut(&body{items: items}) {
		if err != nil {
			return err
		}
		if len(o.Raw) != len(items[n].raw) {
			return fmt.Errorf("object %d has %d bytes, not %d", n, len(o.Raw), len(items[n].raw))
		}
		o.Raw = nil
		items[n].object = o
		n++
	}
	if n != len(items) {
		return fmt.Errorf("there are %d objects, not %d", n, len(items))
	}
	return nil
}

// drop drops managed fields from the bytes, as informers can.
func drop(l *line, items []*item) error {
	return each(items, func(it *item) error {
		l.stored += len(l.steps.DropManagedFields(it.raw))
		return nil
	})
}

// sum computes the keyed checksum of the object.
func sum(l *line, items []*item) error {
	return each(items, func(it *item) error { it.sum = l.steps.Sum(it.raw); return nil })
}

func beginRedact(l *line) (err error) {
	l.redactor, err = redact.New(l.key, nil)
	return err
}

// hide redacts the object.
func hide(l *line, items []*item) error {
	return each(items, func(it *item) (err error) {
		it.redacted, err = l.redactor.Redact(resource, it.raw)
		return err
	})
}

// pack packs the object for the engine's memory.
func pack(l *line, items []*item) error {
	return each(items, func(it *item) error {
		it.packed = l.steps.Pack(it.object.UID, it.object.ResourceVersion, it.sum, it.redacted)
		return nil
	})
}

// unpack unpacks both versions.
func unpack(_ *line, items []*item) error {
	return each(items, func(it *item) (err error) {
		if it.before, err = it.prev.packed.JSON(); err == nil {
			it.after, err = it.packed.JSON()
		}
		return err
	})
}

// decode decodes what may differ in the two versions.
func decode(_ *line, items []*item) error {
	return each(items, func(it *item) (err error) {
		it.old, it.now, err = jsonmap.DecodeChanged(it.before, it.after)
		return err
	})
}

func (l *line) loadSchema() (err error) {
	all := openapi.New(func(context.Context, string) ([]byte, error) { return synth.OpenAPI(), nil })
	l.schema, err = all.For(l.ctx, kind.Group, kind.Version, kind.Kind)
	return err
}

func beginCompare(l *line) error {
	for _, it := range l.updates { // as build does before it compares
		(&change.Change{}).SetObjects(it.old, it.now)
	}
	return l.loadSchema()
}

// compare compares the two versions. It is a part of build.
func compare(l *line, items []*item) error {
	return each(items, func(it *item) error {
		if len(diff.Objects(it.old, it.now, l.schema)) == 0 {
			return errors.New("nothing differs")
		}
		return nil
	})
}

func beginBuild(l *line) error {
	rules, err := quiet.New()
	if err != nil {
		return err
	}
	l.builder = change.Builder{Quiet: rules}
	return l.loadSchema()
}

// build builds the change: it compares, finds the managers and what is quiet, and judges.
func build(l *line, items []*item) error {
	return each(items, func(it *item) error {
		v := &it.change
		*v = capture.Version{BeforeJSON: it.before, AfterJSON: it.after, Sum: it.sum, Exact: true}
		v.Meta = meta(it, event.Updated)
		l.builder.Build(&v.Change, it.old, it.now, l.schema)
		v.Judge()
		v.Before, v.After = nil, nil
		if len(v.Fields) == 0 || v.Quiet {
			return errors.New("nothing differs")
		}
		return nil
	})
}

func meta(it *item, op event.Op) change.Meta {
	o := it.object
	return change.Meta{Op: op, Kind: kind, Namespace: o.Key.Namespace, Name: o.Key.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, At: time.Now()}
}

func beginEncode(l *line) (err error) {
	l.encoder, err = journal.NewEncoder()
	if err == nil {
		l.ends = append(l.ends, func() error { l.encoder.Close(); return nil })
	}
	return err
}

// encode makes what the journal stores of both versions. It is a part of append.
func encode(l *line, items []*item) error {
	return each(items, func(it *item) error {
		state, difference := l.encoder.Update(it.before, it.after)
		l.stored += len(state) + len(difference)
		return nil
	})
}

func beginAppend(l *line) (err error) {
	if l.journal, err = journal.Open(l.ctx, filepath.Join(l.dir, "journal.db"), journal.Options{Cluster: cluster}); err != nil {
		return err
	}
	l.ends = append(l.ends, l.journal.Close)
	rows := make([]journal.Row, len(l.seeds))
	for i, it := range l.seeds {
		rows[i] = journal.Row{Meta: meta(it, event.Snapshot), After: it.redacted}
		rows[i].Time = rows[i].At
	}
	return l.write(rows)
}

// appendRows appends the changes to the journal.
func appendRows(l *line, items []*item) error {
	for len(items) > 0 {
		some := items[:min(batch, len(items))]
		items = items[len(some):]
		rows := make([]journal.Row, len(some))
		for i, it := range some {
			v := &it.change
			rows[i] = journal.Row{Meta: v.Meta, Before: v.BeforeJSON, After: v.AfterJSON, Sum: v.Sum}
		}
		if err := l.write(rows); err != nil {
			return err
		}
	}
	return nil
}

func (l *line) write(rows []journal.Row) error {
	last := rows[len(rows)-1]
	done, err := l.journal.Append(l.ctx, []journal.Batch{{
		Stream: journal.Stream{GroupResource: resource},
		Head:   journal.Head{Version: last.ResourceVersion, Live: true, EverLive: true, At: last.At},
		Rows:   rows,
	}})
	if err == nil && done.Rows != len(rows) {
		err = fmt.Errorf("%d of %d changes were appended", done.Rows, len(rows))
	}
	return err
}

// beginDeliver starts a pump to a file.
func beginDeliver(l *line) error {
	to, err := file.New(file.Options{Path: filepath.Join(l.dir, "changes.jsonl")})
	if err != nil {
		return err
	}
	l.store, l.sink = &sinks.Store{}, sinks.Watch(to)
	pump, err := deliver.New(deliver.Options{Name: "file", Sink: l.sink, Store: l.store, From: deliver.Beginning})
	if err != nil {
		return errors.Join(err, to.Close(l.ctx))
	}
	ctx, cancel := context.WithCancel(l.ctx)
	ended := make(chan error, 1)
	go func() { ended <- pump.Run(ctx) }()
	l.ends = append(l.ends, func() error { cancel(); return <-ended })
	return nil
}

// send delivers the changes to the file.
func send(l *line, items []*item) error {
	all := make([]deliver.Item, len(items))
	for i, it := range items {
		c := it.change.Change
		c.Meta = journal.Stored(c.Meta)
		all[i] = deliver.Item{Change: &c, Size: 1 << 10, Event: sync.OnceValue(func() *event.Event {
			e := change.Whole(cluster, &c)
			return &e
		})}
	}
	l.store.Add(all...)
	l.sent += len(items)
	return l.sink.Wait(l.ctx, l.sent)
}
