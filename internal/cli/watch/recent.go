package watch

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/recent"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/reconstruct"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/usage"
	"github.com/tattler-dev/tattler/internal/when"
)

// maxHeld bounds the live changes that wait for the reconstructed ones.
const maxHeld = 1000

// history shows what was written before the watch, once the first lists are complete: they are its evidence, so nothing
// is missed between them and the first live change. Live changes wait meanwhile.
type history struct {
	since     time.Time
	collector *reconstruct.Collector
	source    recent.Source
	out       recent.Printer
	held      []change.Change
	shown     bool
}

// sinceTime reads --since.
func (o *Options) sinceTime(now time.Time) (since time.Time, err error) {
	if o.Since == "" {
		return since, nil
	}
	if o.Initial {
		return since, usage.Errorf("--since and --initial exclude each other")
	}
	if since, err = when.Parse(o.Since, now); err != nil {
		return since, usage.Errorf("--since: %v", err)
	}
	return since, nil
}

// history returns the history that --since asks for; nil without it.
func (o *Options) history(since time.Time, cluster *kube.Cluster, n selection.Namespaces, status *terminal.Status, rules *quiet.Set, f *filter) (*history, error) {
	if since.IsZero() {
		return nil, nil
	}
	ro := o.rendering(status.Before(o.IO.Out), n, f)
	ro.Today, ro.Full = time.Now, o.Full
	out, err := recent.NewPrinter(ro, o.Output, cluster.Name, status.Line)
	if err != nil {
		return nil, err
	}
	c := reconstruct.NewCollector(reconstruct.Options{
		Since: since, Rules: rules, Noise: o.Noise, Only: f.Paths, Ignore: f.ignore, Humans: o.Humans,
		Severities: f.lines, Follow: recent.Names(o.Types),
	})
	return &history{since: since, out: out, collector: c}, nil
}

// collect passes the objects that existed at the start to the collector.
func (s *session) collect(b *capture.Batch) {
	if s.history == nil {
		return
	}
	for i := range b.Changes {
		v := &b.Changes[i]
		if v.Op != event.Snapshot {
			continue
		}
		named := len(b.Names) == 0 && !b.Owned || slices.Contains(b.Names, v.Name)
		s.history.collector.Add(b.Stream.Resource, withManagedFields(v), named)
	}
}

// withManagedFields returns the new object of a version with its managed fields. The capture decoded both already; what
// the version has is not modified.
func withManagedFields(v *capture.Version) map[string]any {
	if v.ManagedFields == nil {
		return v.After
	}
	obj := maps.Clone(v.After)
	meta := maps.Clone(change.Metadata(obj))
	meta["managedFields"] = v.ManagedFields
	obj["metadata"] = meta
	return obj
}

// hold keeps a live change until the history is shown. It returns false if the change need not wait.
func (s *session) hold(ctx context.Context, c *change.Change) (held bool, err error) {
	h := s.history
	if h == nil || h.shown {
		return false, nil
	}
	h.held = append(h.held, *c)
	if len(h.held) < maxHeld {
		return true, nil
	}
	return true, s.showHistory(ctx)
}

// showHistory prints what was reconstructed so far, and then the held changes. What is found after a slow start follows
// with the next call.
func (s *session) showHistory(ctx context.Context) error {
	h := s.history
	if h == nil || h.shown && h.collector.Empty() {
		return nil
	}
	refused := recent.Complete(ctx, h.source, h.collector, recent.Names(s.o.Types))
	if said := recent.Refused(refused, s.cluster.Explain); said != "" {
		s.status.Line("%s", said)
	}
	s.status.Clear()
	if t, ok := h.out.(recent.Text); ok {
		t.SetWidth(s.o.IO.Width())
	}
	if err := recent.Show(h.out, h.collector, h.since, time.Local); err != nil {
		return err
	}
	return s.release()
}

// release prints the held changes.
func (s *session) release() error {
	h := s.history
	if h == nil {
		return nil
	}
	held := h.held
	h.held, h.shown = nil, true
	for _, c := range held {
		if err := s.change(time.Now(), c); err != nil {
			return err
		}
	}
	return nil
}
