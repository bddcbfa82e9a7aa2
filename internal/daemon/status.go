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

// status tells the daemon's state. It waits for nobody but who reads the journal, and for that not long;
// where the journal cannot be read, the state says so, and the rest of it is right.
func (d *daemon) status(ctx context.Context) (control.Status, error) {
	s := control.Status{
		Version: buildinfo.Version(), Cluster: d.o.Cluster, PID: os.Getpid(), Started: d.state.started, Starting: d.state.doing(),
		Streams: []control.Stream{}, Sinks: []control.Sink{},
		Journal: control.Journal{
			Path: d.o.Journal, Limit: d.o.Retention.Size, Age: int64(d.o.Retention.Age / time.Second),
		},
	}
	if s.Starting != "" {
		return s, nil
	}
	s.Cluster, s.Journal.Path = d.journal.Cluster(), d.journal.Path()
	d.state.tell(&s)
	err := errors.Join(d.tellJournal(ctx, &s.Journal), d.tellSinks(ctx, &s))
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return s, fmt.Errorf("tell the state: %w", ctx.Err())
	default:
		s.Journal.ReadError = err.Error()
	}
	return s, nil
}

// tell adds what was remembered.
func (s *state) tell(to *control.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to.Settled = s.settled
	if s.away != nil {
		to.Away, to.AwaySince = s.away.Error(), s.awayAt
	}
	j := &to.Journal
	j.Recorded, j.Quiet, j.Duplicates, j.Commits = s.recorded, s.quiet, s.duplicates, s.commits
	j.Removed, j.Failures, j.WritingSince = s.gone, s.failures, s.writing
	j.States = s.states
	j.ClockJump, j.ClockDoubt = int64(s.jump/time.Second), int64(s.doubt/time.Second)
	if s.unwritten != nil {
		j.Error, j.ErrorAt = s.unwritten.Error(), s.unwrittenAt
	}
	to.Audits = slices.SortedFunc(maps.Values(s.audits), func(a, b control.Audits) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), map[bool]int{true: 1}[a.Contents]-map[bool]int{true: 1}[b.Contents])
	})
	to.Streams = []control.Stream{}
	if s.watcher == nil {
		return
	}
	to.UnfilledRules = s.watcher.UnfilledRules()
	for _, st := range s.watcher.Streams() {
		to.Streams = append(to.Streams, s.stream(&st))
	}
}

// stream tells of one stream; s.mu is held.
func (s *state) stream(st *capture.StreamStatus) control.Stream {
	was := s.earlier[streamOf(st.Stream)]
	row := control.Stream{
		Resource: st.Resource.GroupResource(), Version: st.Resource.Version, Namespace: st.Namespace, Selection: st.Selection,
		State: control.StreamState(st.State), Since: st.Since, TryingSince: st.Trying, Objects: st.Objects, ResourceVersion: st.Version,
		Lists: was.lists + st.Lists, Watches: was.watches + st.Watches, Gaps: was.gaps + st.Gaps,
	}
	if err := cmp.Or(s.stopped, st.Err); err != nil {
		row.Error = err.Error()
	}
	return row
}

func (d *daemon) tellJournal(ctx context.Context, j *control.Journal) error {
	size, err := d.reader.Size(ctx)
	if err != nil {
		return err
	}
	j.Used, j.Free, j.Log = size.Used, size.Free, size.Log
	j.First, j.Last, j.Oldest, j.Newest = size.First, size.Last, size.Oldest, size.Newest
	return nil
}

// tellSinks tells of the sinks that are configured, and names those that are not any more. With an error,
// what the pumps know is told.
func (d *daemon) tellSinks(ctx context.Context, s *control.Status) error {
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
			Name: st.Name, To: st.Sink, State: string(st.State), Cursor: st.Cursor, Dead: int64(standing[st.Name].Dead), Buried: st.Dead,
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
