package render

import (
	"slices"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/story"
)

// Stream prints changes as they happen: routine ones as the stories that they come to. With Options.Flat, it prints each
// change. It is not safe for concurrent use.
type Stream struct {
	*Text
	live   *Live
	engine *story.Engine // nil with Flat
	seq    int64
}

// NewStream returns a Stream. The options say whether it prints stories.
func NewStream(o Options) *Stream {
	o.Watching, o.Stories = true, !o.Flat
	s := &Stream{Text: New(o)}
	if s.live = NewLive(s.Text); o.Stories {
		s.engine = story.New(o.Cluster, nil)
		s.live.now = s.engine.Tree
	}
	return s
}

// Change takes a change with its objects.
func (s *Stream) Change(now time.Time, c change.Change) error {
	if s.engine == nil {
		return s.Text.Change(now, c)
	}
	s.seq++
	in := story.Read(&c)
	in.Seq, c.Routine = s.seq, in.Routine
	updates, err := s.engine.Apply(&in)
	if err == nil {
		err = s.Text.Change(now, c)
	}
	var heads []string
	for _, u := range updates {
		tree, ok := s.engine.Tree(u.Story.ID)
		if !ok || slices.Contains(heads, tree.ID) || c.Op == event.Snapshot || err != nil { // what is new comes later
			continue
		}
		heads = append(heads, tree.ID)
		err = s.live.Story(now, &tree)
	}
	return err
}

// Next returns when Tick has something to print; false if only after another change.
func (s *Stream) Next() (time.Time, bool) {
	at, ok := s.Text.Next()
	if due, waits := s.live.Next(); waits && (!ok || due.Before(at)) {
		return due, true
	}
	return at, ok
}

// Tick prints what is due.
func (s *Stream) Tick(now time.Time) error {
	if err := s.Text.Tick(now); err != nil {
		return err
	}
	return s.live.Tick(now)
}

// Flush prints what waits. It is for the end.
func (s *Stream) Flush(now time.Time) error {
	if err := s.live.Flush(now); err != nil {
		return err
	}
	return s.Text.Flush(now)
}
