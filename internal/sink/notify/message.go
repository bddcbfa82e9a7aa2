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

// Message is what a template makes text of: a change, or what has changed within a window.
type Message struct {
	// Cluster is the name of the cluster, Title one line that says all in short.
	Cluster, Title string
	// Total is how many changes this stands for, From and To when the first and the last of them happened.
	Total    int
	From, To time.Time
	// Stories are what happened, deletions and gaps first.
	Stories []Story
	// Counts are the changes by what happened to which kind, the most first, where there are several.
	Counts []Count
	// More are how many changes no story tells of, only Counts.
	More int
	// Op, Loud and Link are those of the only story; of several, Loud tells that one is.
	Op, Link string
	Loud     bool
	// Severity is the story's own; of several, the worst, or recovery if all are.
	Severity event.Severity

	key string // equal for the same changes
}

// Several tells whether there are several stories.
func (m *Message) Several() bool { return len(m.Stories) > 1 || m.More > 0 }

// Story is what happened to an object and to what it owns.
type Story struct {
	// Title says all in short, Op what happened to the object: snapshot, created, updated, deleted, entered,
	// left, gap; empty where only what it owns has changed.
	Title, Op string
	// Kind, Namespace and Name are the object's.
	Kind, Namespace, Name string
	// Loud is true for what stands out: failures, gaps, and deletions of what nobody owns.
	Loud bool
	// Text says in a few words what the changes of the object come to, as `tattler watch` does: a rollout and in how
	// long, a pod's state and its reason. It is empty where Fields say it better, and part of the title.
	Text string
	// Severity is failure, warning, recovery (also of a rollout that is done) or change.
	Severity event.Severity
	// Changes is how many changes the story stands for.
	Changes int
	// Fields are those of the object that have changed, MoreFields how many others have; 64 may be more.
	Fields     []Field
	MoreFields int
	// Owned are the changes of what the object owns, by what happened to which kind.
	Owned []Count
	// Note says why, for a gap.
	Note string
	// At is when it happened, ID the id of the last change and Link where that is shown.
	At       time.Time
	ID, Link string
}

// Field is a changed field: Op is add, remove or replace; values are texts, cut where they are long.
type Field struct{ Path, Op, From, To, Manager string }

func (f Field) isStatus() bool { return f.Path == "status" || strings.HasPrefix(f.Path, "status.") }

// Count is how often something happened to objects of a kind.
type Count struct {
	Op, Kind string
	N        int
}

// message makes what is told of a summary.
func (s *summary) message(k kin, link func(id string) string) *Message {
	m := &Message{Cluster: clean(s.cluster), Total: s.total, From: s.from, To: s.to, More: s.untold, key: s.first + "." + s.last}
	for _, t := range s.merged(k) {
		m.Stories = append(m.Stories, t.tell(link))
	}
	slices.SortStableFunc(m.Stories, func(a, b Story) int {
		if a.Loud != b.Loud {
			return map[bool]int{true: -1, false: 1}[a.Loud]
		}
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	if len(m.Stories) > 0 {
		m.Op, m.Loud, m.Severity = m.Stories[0].Op, m.Stories[0].Loud, worst(m.Stories)
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

// byOp sums counts up over the kinds.
func byOp(counts []Count) []Count {
	sums := map[Count]int{}
	for _, c := range counts {
		sums[Count{Op: c.Op}] += c.N
	}
	return counted(sums)
}

// listed is counts on a line: 3 updated, 1 deleted.
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

// value is a field's value on a line: text as it is, else JSON.
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

// clean is a text on one line, without what cannot be seen.
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

// cut is a text of at most so many runes, which says so where it was longer.
func cut(s string, most int) string {
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}
