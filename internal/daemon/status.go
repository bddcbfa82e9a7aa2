package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/buildinfo"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
	"github.com/tattler-dev/tattler/internal/journal"
)

// status returns the daemon's state. It only waits for reads of the journal, and not for long. If the journal
// cannot be read, the state says so, and the rest of it is correct.
func (d *daemon) status(ctx context.Context) (control.Status, error) {
	s := control.Status{
		Version: buildinfo.Version(), Cluster: d.overall.name(), PID: os.Getpid(), Started: d.overall.started, Starting: d.overall.doing(),
		Streams: []control.Stream{}, Sinks: []control.Sink{},
		Journal: control.Journal{
			Path: d.o.Journal, Limit: d.o.Retention.Size, Age: int64(d.o.Retention.Age / time.Second),
		},
	}
	if d.o.PageRefusals != nil {
		s.PageRefusals = d.o.PageRefusals()
	}
	if s.Starting != "" {
		return s, nil
	}
	s.Cluster, s.Journal.Path = d.journal.Cluster(), d.journal.Path()
	d.overall.fill(&s)
	s.Settled = true
	for _, r := range d.recordings {
		r.ask()
		r.fill(&s)
	}
	if a := d.audit.Load(); a != nil {
		s.Orders = a.Counts()
	}
	s.Traces = d.traces.status()
	err := errors.Join(d.addJournal(ctx, &s.Journal), d.addSinks(ctx, &s))
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return s, fmt.Errorf("report the state: %w", ctx.Err())
	default:
		s.Journal.ReadError = err.Error()
	}
	return s, nil
}

// fill adds what state has collected.
func (s *state) fill(to *control.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to.Settled = s.settled
	if s.away != nil {
		to.Away, to.AwaySince = s.away.Error(), s.awayAt
	}
	j := &to.Journal
	j.Recorded, j.Quiet, j.Duplicates, j.Commits = s.recorded, s.quiet, s.duplicates, s.commits
	j.Failures, j.WritingSince = s.failures, s.writing
	if s.unwritten != nil {
		j.Error, j.ErrorAt = s.unwritten.Error(), s.unwrittenAt
	}
	to.Audits = slices.SortedFunc(maps.Values(s.audits), func(a, b control.Audits) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), map[bool]int{true: 1}[a.Contents]-map[bool]int{true: 1}[b.Contents])
	})
	to.MissingRights = slices.Clone(s.missing)
	if s.unreviewed != nil {
		to.RightsError = s.unreviewed.Error()
	}
	to.Streams = []control.Stream{}
	if s.watcher == nil {
		return
	}
	to.UnfilledRules = s.watcher.UnfilledRules()
	for _, st := range s.watcher.Streams() {
		to.Streams = append(to.Streams, s.stream(&st))
	}
}

// stream returns the state of one stream; s.mu is held.
func (s *state) stream(st *capture.StreamStatus) control.Stream {
	was := s.earlier[streamOf(st.Stream, "")]
	row := control.Stream{
		Resource: st.Resource.GroupResource(), Version: st.Resource.Version, Namespace: st.Namespace, Selection: st.Selection,
		State: control.StreamState(st.State), Since: st.Since, TryingSince: st.Trying, Objects: st.Objects, ResourceVersion: st.Version,
		Lists: was.lists + st.Lists, Watches: was.watches + st.Watches, Gaps: was.gaps + st.Gaps,
	}
	switch {
	case s.stopped != nil:
		row.Error, row.ErrorAt = s.stopped.Error(), s.stoppedAt
	case st.Err != nil:
		row.Error, row.ErrorAt = st.Err.Error(), st.ErrAt
	}
	return row
}

func (d *daemon) addJournal(ctx context.Context, j *control.Journal) error {
	size, err := d.reader.Size(ctx)
	if err != nil {
		return err
	}
	j.Used, j.Free, j.Log = size.Used, size.Free, size.Log
	j.First, j.Last, j.Oldest, j.Newest = size.First, size.Last, size.Oldest, size.Newest
	j.Cut, j.CutNamespace, j.CutCluster = size.Cut, size.CutNamespace, size.CutCluster
	return nil
}

// addSinks adds the configured sinks, and names those that are no longer configured. On an error, it still adds
// what the pumps know.
func (d *daemon) addSinks(ctx context.Context, s *control.Status) error {
	now := time.Now()
	kept, err := d.reader.Sinks(ctx)
	last, lerr := d.reader.Last(ctx)
	err = cmp.Or(err, lerr)
	standing, configured := map[string]journal.Sink{}, map[string]bool{}
	for _, k := range kept {
		standing[k.Name] = k
	}
	s.Sinks = []control.Sink{}
	for i, p := range d.pumps {
		st := p.Status()
		row := control.Sink{
			Name: st.Name, To: st.Sink, State: string(st.State), Cursor: st.Cursor, Dead: int64(standing[st.Name].Dead), SetAside: st.Dead,
			Delivered: st.Delivered, Held: st.Held, Attempts: st.Attempts, Failures: st.Failures, Lost: standing[st.Name].Lost,
			FilterErrors: st.FilterErrors, FilterError: st.FilterError, Error: st.Error, ErrorAt: st.ErrorAt, RetryAt: st.Retry,
		}
		if s := st.Stuck; s != nil {
			row.Stuck = &control.Stuck{ID: s.ID, Subject: s.Subject, Since: s.Since, Attempts: s.Attempts}
			if after := d.o.Sinks[i].Retry.GiveUp; after > 0 {
				row.Stuck.GiveUpAt = s.Since.Add(after)
			}
		}
		if err == nil {
			err = sinkadmin.Place(ctx, d.reader, &row, st.Cursor, last, now)
		}
		configured[st.Name] = true
		s.Sinks = append(s.Sinks, row)
	}
	for _, k := range kept {
		if !configured[k.Name] {
			s.Left = append(s.Left, k.Name)
		}
	}
	return err
}
