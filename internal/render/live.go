package render

import (
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/story"
)

// Live decides when a story that goes on has a line: once something is wrong with it, again when it is over, and in between
// when it takes long. What the lines say does not depend on that: see Tell. It is not safe for concurrent use.
type Live struct {
	text *Text
	of   map[string]*telling // open stories, by their ids
}

// telling is what was said of an open story.
type telling struct {
	tree     *story.Tree
	said     string
	severity event.Severity
	at       time.Time // of the last line
	due      time.Time // of the next one, if nothing else happens; zero: none
	repeats  int       // lines in a row about the same trouble
}

const (
	// slow is after how long a story without trouble has a line, if it is not over.
	slow = startTime
	// again is the time until a story of which something else is wrong has the next line. It doubles up to maxAgain times.
	again    = time.Minute
	maxAgain = 6
	// wait is how long a change of an object's state waits for further ones, and busy is the time between two lines about one
	// that changes all the time.
	wait = time.Second
	busy = 10 * time.Second
)

// NewLive returns a Live that prints to a text with Options.Stories.
func NewLive(t *Text) *Live { return &Live{text: t, of: map[string]*telling{}} }

// Story takes a story that came to another state.
func (l *Live) Story(now time.Time, s *story.Tree) error {
	told := Tell(s, now)
	t := l.of[s.ID]
	if s.Kind == story.Status && s.State.Word == story.Done {
		l.settles(now, s)
		return nil
	}
	if !s.Open() {
		delete(l.of, s.ID)
		if t != nil && t.said == told.Text {
			return nil
		}
		return l.text.Story(s, now)
	}
	if t == nil {
		t = &telling{due: now.Add(slow)}
		l.of[s.ID] = t
	}
	t.tree = s
	switch {
	case bad(told.Severity) && severityRank(told.Severity) > severityRank(t.severity):
		return l.say(now, t)
	case told.Text == t.said:
		t.due = time.Time{}
	case t.due.IsZero():
		t.due = later(now, t.at.Add(again<<min(t.repeats, maxAgain)))
	}
	return nil
}

// settles waits a moment for further changes of an object's state. One that changes all the time has a line once in a while.
func (l *Live) settles(now time.Time, s *story.Tree) {
	t := l.of[s.ID]
	if t == nil {
		t = &telling{repeats: -1}
		l.of[s.ID] = t
	}
	if t.tree = s; t.due.IsZero() {
		t.due = later(now.Add(wait), t.at.Add(min(wait<<max(t.repeats, 0), busy)))
	}
}

// say prints the line of an open story.
func (l *Live) say(now time.Time, t *telling) error {
	told := Tell(t.tree, now)
	if t.due = (time.Time{}); told.Silent {
		t.due = now.Add(slow)
		return nil
	}
	if told.Severity == t.severity {
		t.repeats++
	} else {
		t.repeats = 0
	}
	t.said, t.severity, t.at = told.Text, told.Severity, now
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
		if !t.tree.Open() && t.due.IsZero() && now.Sub(t.at) > time.Minute {
			delete(l.of, id)
		}
	}
	return l.print(now, func(t *telling) bool { return !t.due.After(now) })
}

// Flush prints the lines that are not due yet, too. It is for the end.
func (l *Live) Flush(now time.Time) error {
	return l.print(now, func(*telling) bool { return true })
}

func (l *Live) print(now time.Time, which func(t *telling) bool) error {
	for {
		var first *telling
		for _, t := range l.of {
			if !t.due.IsZero() && which(t) && (first == nil || t.tree.Seq < first.tree.Seq) {
				first = t
			}
		}
		if first == nil {
			return nil
		}
		due := first.due
		if err := l.say(now, first); err != nil {
			return err
		}
		if first.due.Equal(due) || first.due.After(due) && which(first) { // still silent at the end
			first.due = time.Time{}
		}
	}
}
