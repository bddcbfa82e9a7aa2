// Package sinkadmin carries out orders about the sinks of a journal, with the pumps of a running daemon or
// without a daemon, and reports the sinks' positions.
package sinkadmin

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/spell"
)

// Admin carries out orders. It is safe for concurrent use.
type Admin struct {
	Journal *journal.Journal
	Reader  *journal.Reader
	// Pumps are those of the configured sinks, by name; nil if no daemon runs.
	Pumps map[string]*deliver.Pump

	pausing sync.Mutex // keeps the journal and the pumps in agreement
}

var _ control.Orders = (*Admin)(nil)

// Open opens the journal of a daemon that does not run. If there is no journal, the error is fs.ErrNotExist; if
// a daemon holds it, a *journal.LockedError. Open never creates a journal: a new one would not belong to a
// cluster.
func Open(ctx context.Context, path string) (*Admin, error) {
	file, err := os.Stat(path)
	if err == nil && (!file.Mode().IsRegular() || file.Size() == 0) {
		err = &fs.PathError{Op: "open journal", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	r, err := journal.OpenReader(ctx, path) // never creates a journal
	if err == nil {
		err = r.Close()
	}
	if err != nil {
		return nil, err
	}
	j, err := journal.Open(ctx, path, journal.Options{})
	if err != nil {
		return nil, err
	}
	if r, err = journal.OpenReader(ctx, path); err != nil { // again: an older format has been migrated
		return nil, errors.Join(err, j.Close())
	}
	return &Admin{Journal: j, Reader: r}, nil
}

// Close closes an Admin that Open returned.
func (d *Admin) Close() error { return errors.Join(d.Reader.Close(), d.Journal.Close()) }

// Pause implements control.Orders.
func (d *Admin) Pause(ctx context.Context, sink string, paused bool) error {
	if _, err := d.find(ctx, sink); err != nil {
		return err
	}
	d.pausing.Lock()
	defer d.pausing.Unlock()
	if err := d.Journal.Pause(ctx, sink, paused); err != nil {
		return err
	}
	switch p := d.Pumps[sink]; {
	case p == nil:
	case paused:
		p.Pause()
	default:
		p.Resume()
	}
	return nil
}

// Replay implements control.Orders.
func (d *Admin) Replay(ctx context.Context, sink string, from control.Place) (done control.Replayed, err error) {
	s, err := d.find(ctx, sink)
	if err != nil {
		return done, err
	}
	last, err := d.Reader.Last(ctx)
	if err != nil {
		return done, err
	}
	cursor, pump := s.Cursor, d.Pumps[sink]
	switch {
	case pump != nil:
		if cursor, err = pump.Done(ctx); err != nil { // a user who sees a change arrive may request it again
			return done, err
		}
	case !s.HasCursor: // it would start now
		cursor = last
	}
	after, err := d.place(ctx, from, last)
	if err != nil {
		return done, err
	}
	after = min(after, cursor) // do not skip changes that it has not received yet
	done = control.Replayed{Again: cursor - after, Behind: last - after, Paused: s.Paused}
	switch {
	case done.Again == 0:
		return done, nil
	case pump != nil:
		return done, pump.Rewind(ctx, after)
	}
	return done, d.Journal.Rewind(ctx, sink, after)
}

// place returns the sequence number after which a replay starts. Changes that are no longer kept are not
// counted as replayed.
func (d *Admin) place(ctx context.Context, from control.Place, last int64) (after int64, err error) {
	after = from.After
	switch {
	case !from.Since.IsZero():
		if after, err = d.Reader.SeqAt(ctx, from.Since); err != nil {
			return 0, err
		}
	case after < 0:
		return 0, control.Refuse("%d is not a sequence number", after)
	}
	size, err := d.Reader.Size(ctx)
	if err != nil {
		return 0, err
	}
	if size.First == 0 {
		return last, nil
	}
	return max(after, size.First-1), nil
}

// Skip implements control.Orders. Without a daemon, the blocking change is unknown: the caller names it.
func (d *Admin) Skip(ctx context.Context, sink, id string) (done control.Skipped, err error) {
	kept, err := d.find(ctx, sink)
	if err != nil {
		return done, err
	}
	pump := d.Pumps[sink]
	switch {
	case d.Pumps == nil:
		return d.skipNext(ctx, kept, id)
	case pump == nil:
		return done, control.Refuse("sink %s is not configured: it receives no changes", sink)
	}
	status := pump.Status()
	switch s := status.Stuck; {
	case s == nil:
		return done, control.Refuse("nothing blocks sink %s: it is %s", sink, status.State)
	case !strings.HasPrefix(s.ID, id):
		return done, control.Refuse("change %s blocks sink %s, not %s", s.ID, sink, id)
	}
	s, err := pump.Skip(ctx, status.Stuck.ID)
	if errors.Is(err, deliver.ErrNotStuck) {
		return done, control.Refuse("sink %s has accepted change %s meanwhile", sink, status.Stuck.ID)
	}
	return control.Skipped{ID: s.ID, Subject: s.Subject, Error: s.Error}, err
}

// ReplayDead implements control.Orders.
func (d *Admin) ReplayDead(ctx context.Context, sink string, ids []string) (done control.Retried, err error) {
	seqs, err := d.letters(ctx, sink, ids)
	if err != nil {
		return done, err
	}
	pump := d.Pumps[sink]
	switch {
	case d.Pumps == nil:
		return done, control.Refuse("only a running daemon can send dead letters: start tattler run")
	case pump == nil:
		return done, control.Refuse("sink %s is not configured: the destination of its dead letters is unknown", sink)
	}
	if done.Taken, err = pump.ReplayDead(ctx, ids...); err == nil {
		done.Refused = len(seqs) - done.Taken
	}
	return done, err
}

// DropDead implements control.Orders.
func (d *Admin) DropDead(ctx context.Context, sink string, ids []string) (int, error) {
	seqs, err := d.letters(ctx, sink, ids)
	if err != nil {
		return 0, err
	}
	return len(seqs), d.Journal.DropDeadLetters(ctx, sink, seqs...)
}

// letters returns the sequence numbers of dead letters, each once.
func (d *Admin) letters(ctx context.Context, sink string, ids []string) (seqs []int64, err error) {
	if _, err := d.find(ctx, sink); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, control.Refuse("name at least one dead letter")
	}
	dead, err := d.Reader.DeadLetters(ctx, sink)
	if err != nil {
		return nil, err
	}
	byID := map[string]int64{}
	for _, l := range dead {
		byID[l.ID] = l.Seq
	}
	for _, id := range ids {
		seq, ok := byID[id]
		if !ok {
			return nil, control.Refuse("sink %s has no dead letter %q", sink, id)
		}
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	return slices.Compact(seqs), nil
}

// Remove implements control.Orders.
func (d *Admin) Remove(ctx context.Context, sink string) error {
	if _, err := d.find(ctx, sink); err != nil {
		return err
	}
	switch {
	case d.Pumps == nil: // a configured sink would start again, and so lose or repeat changes
		return control.Refuse("only a running daemon knows which sinks are configured: start tattler run, then remove %s", sink)
	case d.Pumps[sink] != nil:
		return control.Refuse("sink %s is configured: remove it from the configuration and restart the daemon first", sink)
	}
	return d.Journal.RemoveSink(ctx, sink)
}

// find returns the journal's record of a sink. A configured sink need not be in the journal yet.
func (d *Admin) find(ctx context.Context, sink string) (journal.Sink, error) {
	all, err := d.Reader.Sinks(ctx)
	if err != nil {
		return journal.Sink{}, err
	}
	names := slices.Collect(maps.Keys(d.Pumps))
	for _, s := range all {
		if s.Name == sink {
			return s, nil
		}
		names = append(names, s.Name)
	}
	if d.Pumps[sink] != nil {
		return journal.Sink{Name: sink}, nil
	}
	return journal.Sink{}, Unknown(sink, names)
}

// Unknown returns the refusal for a name that no sink has.
func Unknown(sink string, names []string) error {
	slices.Sort(names)
	names = slices.Compact(names)
	switch near := spell.Nearest(sink, names); {
	case near != "":
		return control.Refuse("there is no sink %q; did you mean %q?", sink, near)
	case len(names) == 0:
		return control.Refuse("there is no sink %q: the journal has no sinks", sink)
	}
	return control.Refuse("there is no sink %q: there are %s", sink, strings.Join(names, ", "))
}
