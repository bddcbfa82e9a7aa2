package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/story"
)

// Told is a story in words.
type Told struct {
	// Text says what happened, the problem first.
	Text string
	// Severity is failure or warning while something is wrong, and recovery once it has passed.
	Severity event.Severity
	// At is when the story came to where it stands.
	At time.Time
}

// Tell puts a story into words, with the stories that are part of it. now is the reader's time: it says for how long
// something has lasted.
func Tell(s *story.Story, parts []story.Story, now time.Time) Told {
	t := teller{s: s, now: now}
	for i := range parts {
		t.part(&parts[i])
	}
	return Told{Text: t.text(), Severity: t.severity(), At: t.at()}
}

// teller sums up a story and its parts.
type teller struct {
	s   *story.Story
	now time.Time

	created, leaving, gone int            // pods
	evicted                map[string]int // pods, by their nodes
	failing                map[string]int // objects, by what is wrong with them
	first                  *story.Story   // the first part that fails
	worst                  event.Severity // of what is wrong now
	was                    event.Severity // of what was wrong
	last                   time.Time      // when a part came to where it stands
}

func (t *teller) part(p *story.Story) {
	if p.Object.GroupKind() == "Pod" {
		switch {
		case p.Kind == story.Start && !p.Unknown:
			t.created++
		case p.Kind == story.Deletion && p.Open():
			t.leaving++
		case p.Kind == story.Deletion:
			t.gone++
		}
		if p.Kind == story.Deletion && p.State.Facts.Evicted {
			if t.evicted == nil {
				t.evicted = map[string]int{}
			}
			t.evicted[p.State.Facts.Node]++
		}
	}
	t.was = worst(t.was, p.Worst)
	if p.Open() && p.State.Word == story.Failing {
		t.wrong(p)
	}
}

// wrong notes what is wrong with an object now.
func (t *teller) wrong(p *story.Story) {
	if t.failing == nil {
		t.failing = map[string]int{}
	}
	t.failing[p.State.Facts.Reason]++
	t.worst = worst(t.worst, p.State.Severity)
	if t.first == nil {
		t.first = p
	}
	t.last = later(t.last, p.State.At)
}

func worst(a, b event.Severity) event.Severity {
	if severityRank(b) > severityRank(a) {
		return b
	}
	return a
}

func (t *teller) severity() event.Severity {
	s := t.s
	switch now := worst(t.worst, s.State.Severity); {
	case now == event.Failure || now == event.Warning:
		return now
	case !s.Open() && (severityRank(s.Worst) > 1 || severityRank(t.was) > 1) && s.State.Word == story.Done:
		return event.Recovery
	}
	return event.Normal
}

func (t *teller) at() time.Time { return later(t.s.State.At, t.last) }

func (t *teller) text() string {
	said := t.self()
	if t.first == nil {
		return said
	}
	var problems []string
	for _, reason := range slices.Sorted(maps.Keys(t.failing)) {
		what := strings.ToLower(t.first.Object.Kind.Kind)
		problems = append(problems, plural(t.failing[reason], what)+" "+reason)
	}
	why := strings.Join(problems, ", ")
	if m := t.first.State.Facts.Message; m != "" && len(problems) == 1 {
		why += ": " + m
	}
	return joined(why, "; ", said)
}

// self says what became of the object.
func (t *teller) self() string {
	s := t.s
	switch s.Kind {
	case story.Rollout:
		return t.rollout()
	case story.Scale:
		return t.scale()
	case story.Start:
		return t.start()
	case story.Disruption:
		return t.disruption()
	case story.Deletion:
		return t.deletion()
	}
	return joined(s.State.Facts.Reason, ": ", s.State.Facts.Message)
}

func (t *teller) took() string {
	if t.s.Unknown {
		return ""
	}
	return distance(t.s.Begin, t.s.End)
}

func (t *teller) ready() string {
	p := t.s.State.Facts.Pods
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d ready", p.Ready, p.Wanted)
}

func (t *teller) rollout() string {
	s := t.s
	back := "rolled out"
	switch {
	case s.State.Word == story.Superseded:
		return joined("rollout ended by the next one", ": ", t.ready())
	case s.Open():
		p := s.State.Facts.Pods
		said := fmt.Sprintf("rolling out: %d/%d updated, %s", p.Updated, p.Wanted, t.ready())
		if s.State.Word == story.Failing {
			said = joined(s.State.Facts.Reason, ": ", s.State.Facts.Message) + "; " + said
		}
		return joined(said, ", ", t.pods())
	}
	return joined(joined(back, " ", t.took())+": "+t.ready(), ", ", t.pods())
}

func (t *teller) scale() string {
	s := t.s
	said := "scaled"
	if s.Facts.From != nil && s.State.Facts.Pods != nil {
		said = fmt.Sprintf("scaled %d → %d", *s.Facts.From, s.State.Facts.Pods.Wanted)
	}
	if !s.Open() {
		said = joined(said, " ", t.took())
	}
	return joined(said+": "+t.ready(), ", ", t.pods())
}

func (t *teller) start() string {
	s := t.s
	if s.State.Facts.Pods != nil {
		return t.rollout()
	}
	said := "new"
	if node := s.State.Facts.Node; node != "" {
		said += " on " + node
	}
	if s.Open() {
		return joined(said, ", ", s.State.Facts.Word)
	}
	return joined(joined(said, ", Pending → ", s.State.Facts.Word), " ", t.took())
}

func (t *teller) disruption() string {
	s := t.s
	if !s.Open() {
		return joined(joined(t.ready()+" again", ", ", strings.Replace(t.took(), "in ", "after ", 1)), ", ", t.pods())
	}
	if s.Facts.From != nil {
		return joined(fmt.Sprintf("%d/%d → %s", *s.Facts.From, s.State.Facts.Pods.Wanted, t.ready()), ", ", t.pods())
	}
	return joined(t.ready(), ", ", t.pods())
}

func (t *teller) deletion() string {
	if t.s.Open() {
		return "terminating"
	}
	return joined("gone", ", ", t.pods())
}

// pods says how many pods came and went.
func (t *teller) pods() string {
	var parts []string
	evicted := 0
	for _, node := range slices.Sorted(maps.Keys(t.evicted)) {
		evicted += t.evicted[node]
		parts = append(parts, fmt.Sprintf("%d evicted from %s", t.evicted[node], node))
	}
	gone := t.gone - evicted
	switch {
	case t.created > 0 && t.created == gone && t.leaving == 0:
		parts = append(parts, plural(t.created, "pod")+" replaced")
		return strings.Join(parts, ", ")
	case t.created > 0 && t.s.Kind != story.Start:
		parts = append(parts, plural(t.created, "pod")+" new")
	}
	if gone > 0 {
		parts = append(parts, plural(gone, "pod")+" gone")
	}
	if t.leaving > 0 {
		parts = append(parts, plural(t.leaving, "pod")+" terminating")
	}
	return strings.Join(parts, ", ")
}
