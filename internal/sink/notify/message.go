package notify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tattler-dev/tattler/event"
)

// Message is the data of a template: one change, or the changes of a window.
type Message struct {
	// Cluster is the name of the cluster. Title sums up everything in one line.
	Cluster, Title string
	// Total is the number of changes. From and To are the times of the first and the last.
	Total    int
	From, To time.Time
	// Stories are the changes by object; prominent ones come first.
	Stories []Story
	// Counts are the changes by operation and kind in descending order, if there are several stories.
	Counts []Count
	// More is the number of changes that are in Counts but in no story.
	More int
	// Op, Prominent and Link belong to the only story. If there are several, Prominent is set if one of them has it.
	Op, Link  string
	Prominent bool
	// Severity is the story's severity. If there are several, it is the worst, or recovery if all have recovered.
	Severity event.Severity

	key string // the same for the same changes
}

// Several reports whether there are several stories.
func (m *Message) Several() bool { return len(m.Stories) > 1 || m.More > 0 }

// Story is what happened to an object and to everything it owns.
type Story struct {
	// Title sums up the story. Op is the operation on the object: snapshot, created, updated, deleted, entered, left,
	// gap; it is empty if only owned objects have changed.
	Title, Op string
	// Kind, Namespace and Name are the object's.
	Kind, Namespace, Name string
	// Prominent is set for prominent changes: failures, gaps, and deletions of objects without an owner.
	Prominent bool
	// Text sums up the changes of the object in a few words, as `tattler watch` does: a rollout and its duration, a
	// pod's state and its reason. It is part of the title. It is empty if Fields say it better.
	Text string
	// Severity is failure, warning, recovery (including a finished rollout) or change.
	Severity event.Severity
	// Changes is the number of changes in the story.
	Changes int
	// Fields are the changed fields of the object. MoreFields counts those that are left out; it stops at 64.
	Fields     []Field
	MoreFields int
	// Owned are the changes of owned objects, by operation and kind.
	Owned []Count
	// Note is the reason of a gap.
	Note string
	// At is the time of the last change, or the end of the interval in which it happened, ID its id, and Link the URL that shows it.
	At       time.Time
	ID, Link string

	number int // of the last change in the summary: by their times, a creation may come before the deletion that it followed
}

// Field is a changed field. Op is add, remove, replace or reorder; long values are cut. From and To of a reorder are the names
// of list elements.
type Field struct{ Path, Op, From, To, Manager string }

func (f Field) isStatus() bool { return f.Path == "status" || strings.HasPrefix(f.Path, "status.") }

// Count counts an operation on objects of a kind.
type Count struct {
	Op, Kind string
	N        int
}

// message makes the message of a summary.
func (s *summary) message(k owners, link func(id string) string) *Message {
	m := &Message{Cluster: clean(s.cluster), Total: s.total, From: s.from, To: s.to, More: s.countedOnly, key: s.first + "." + s.last}
	for _, t := range s.merged(k) {
		m.Stories = append(m.Stories, t.public(link))
	}
	slices.SortStableFunc(m.Stories, func(a, b Story) int {
		if a.Prominent != b.Prominent {
			return map[bool]int{true: -1, false: 1}[a.Prominent]
		}
		return cmp.Compare(a.number, b.number)
	})
	if len(m.Stories) > 0 {
		m.Op, m.Prominent, m.Severity = m.Stories[0].Op, m.Stories[0].Prominent, worst(m.Stories)
	}
	if m.Several() {
		m.Counts, m.Op = counted(s.counts), ""
		m.Title = fmt.Sprintf("%s: %s", plural(s.total, "change"), listed(byOp(m.Counts)))
	} else if len(m.Stories) == 1 {
		m.Title, m.Link = m.Stories[0].Title, m.Stories[0].Link
	}
	if m.Cluster != "" {
		m.Title += " · " + m.Cluster
	}
	return m
}

// byOp sums up counts over all kinds.
func byOp(counts []Count) []Count {
	sums := map[Count]int{}
	for _, c := range counts {
		sums[Count{Op: c.Op}] += c.N
	}
	return counted(sums)
}

// listed formats counts on one line: 3 updated, 1 deleted.
func listed(counts []Count) string {
	var out []string
	for _, c := range counts {
		out = append(out, fmt.Sprintf("%d %s", c.N, strings.TrimSpace(clean(c.Kind)+" "+c.Op)))
	}
	return strings.Join(out, ", ")
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// value formats a field's value on one line: text unchanged, everything else as JSON.
func value(v any) string {
	s, ok := v.(string)
	if !ok || s == "" {
		text, err := marshal(v)
		if err != nil {
			return "?"
		}
		s = string(text)
	}
	return cut(clean(cut(s, 8*maxValue)), maxValue)
}

// clean puts a text on one line and replaces unprintable characters.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return '⏎'
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '·'
		}
		return r
	}, strings.ToValidUTF8(s, "·"))
}

// cut shortens a text to so many runes, and marks the cut.
func cut(s string, most int) string {
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}
