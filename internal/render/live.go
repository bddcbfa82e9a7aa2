package render

import (
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/story"
)

// Live decides when the stories that change have a line: at once if something is wrong, a moment after the end, and in between
// when it takes long. What a line says does not depend on that: see Tell. It is not safe for concurrent use.
type Live struct {
	text *Text
	// now returns a story as it is, with the one that it belongs to; nil: as it was passed.
	now func(id string) (story.Tree, bool)
	of  map[string]*telling // by the ids of stories
}

// telling is what was said of a story.
type telling struct {
	tree     *story.Tree
	said     string
	severity event.Severity
	ended    bool      // its end was said
	at       time.Time // of the last line; zero: none
	due      time.Time // of the next one, if nothing else happens; zero: none
	repeats  int       // lines, each soon after the last one
}

const (
	// slow is after how long a story without trouble has a line, if it is not over.
	slow = startTime
	// again is the time until a story of which something is wrong has the next line. It doubles up to maxAgain times.
	again    = time.Minute
	maxAgain = 6
	// wait is how long a story that ended waits for what may still follow. The time doubles, up to busy, for one that begins and
	// ends all the time.
	wait = time.Second
	busy = 10 * time.Second
	// proven is how long a container that crashed must run before its pod counts as recovered, and remembered for how long lines
	// about a story count as being soon after each other.
	proven     = time.Minute
	remembered = time.Minute
)

// NewLive returns a Live that prints to a text with Options.Stories.
func NewLive(t *Text) *Live { return &Live{text: t, of: map[string]*telling{}} }

// Story takes a story that changed.
func (l *Live) Story(now time.Time, s *story.Tree) error {
	t := l.of[s.ID]
	if t == nil {
		t = &telling{}
		l.of[s.ID] = t
	}
	t.tree = s
	words := Tell(s, now)
	switch {
	case bad(words.Severity) && severityRank(words.Severity) > severityRank(t.severity) && s.Kind != story.Report:
		return l.say(now, t)
	case words.Text == t.said || !s.Open() && t.ended && s.Kind != story.Status && words.Severity == t.severity:
		t.due = time.Time{}
	case !s.Open():
		t.due = later(now.Add(delay(s, &words)), t.at.Add(min(wait<<min(t.repeats, maxAgain), busy)))
	case t.at.IsZero():
		if t.due.IsZero() {
			t.due = now.Add(slow)
		}
	default:
		if t.due = t.at.Add(again << min(t.repeats, maxAgain)); !t.due.After(now) {
			return l.say(now, t)
		}
	}
	return nil
}

// delay is how long a story that ended waits for its line.
func delay(s *story.Tree, words *Wording) time.Duration {
	switch {
	case s.Kind == story.Deletion && s.Facts.Pods != nil && !settled(s):
		return slow
	case words.Severity == event.Recovery && crashed(s):
		return proven
	}
	return wait
}

// settled reports whether a deleted workload's objects are gone, too.
func settled(s *story.Tree) bool {
	for i := range s.Parts {
		if s.Parts[i].Open() {
			return false
		}
	}
	return len(s.Parts) > 0
}

// crashed reports whether a container ended in the course of a story.
func crashed(s *story.Tree) bool {
	if s.Facts.Restarts > 0 {
		return true
	}
	for i := range s.Parts {
		if s.Parts[i].Facts.Restarts > 0 {
			return true
		}
	}
	return false
}

// say prints the line of a story.
func (l *Live) say(now time.Time, t *telling) error {
	id := t.tree.ID
	if l.now != nil {
		tree, ok := l.now(id)
		if !ok || tree.ID != id { // forgotten, or a part of another one
			delete(l.of, id)
			return nil
		}
		t.tree = &tree
	}
	words := Tell(t.tree, now)
	t.due = time.Time{}
	switch {
	case words.Silent && t.tree.Open():
		t.due = now.Add(slow)
		return nil
	case words.Silent:
		delete(l.of, id)
		return nil
	case words.Text == t.said:
		return nil
	}
	if t.repeats++; t.at.IsZero() || now.Sub(t.at) > remembered<<min(t.repeats, maxAgain) {
		t.repeats = 0
	}
	t.said, t.severity, t.at, t.ended = words.Text, words.Severity, now, !t.tree.Open()
	return l.text.Story(t.tree, now)
}

// Next returns when Tick has something to print; false if only after another story.
func (l *Live) Next() (next time.Time, ok bool) {
	for _, t := range l.of {
		if !t.due.IsZero() && (!ok || t.due.Before(next)) {
			next, ok = t.due, true
		}
	}
	return next, ok
}

// Tick prints the lines that are due, in the order in which the stories came to where they stand.
func (l *Live) Tick(now time.Time) error {
	for id, t := range l.of {
		if t.due.IsZero() && !t.tree.Open() && now.Sub(t.at) > remembered {
			delete(l.of, id)
		}
	}
	for {
		t := l.first(func(t *telling) bool { return !t.due.After(now) })
		if t == nil {
			return nil
		}
		if err := l.say(now, t); err != nil {
			return err
		}
	}
}

// Flush prints all lines that wait, and forgets all stories. It is for the end.
func (l *Live) Flush(now time.Time) error {
	for {
		t := l.first(func(*telling) bool { return true })
		if t == nil {
			clear(l.of)
			return nil
		}
		err := l.say(now, t)
		if t.due = (time.Time{}); err != nil {
			return err
		}
	}
}

// first returns the first of the stories with a line that waits, by where they stand; nil if there is none.
func (l *Live) first(which func(t *telling) bool) (first *telling) {
	for _, t := range l.of {
		if !t.due.IsZero() && which(t) && (first == nil || t.tree.Seq < first.tree.Seq || t.tree.Seq == first.tree.Seq && t.tree.ID < first.tree.ID) {
			first = t
		}
	}
	return first
}
