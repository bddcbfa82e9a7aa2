// Package report writes a daemon's status for people. Times are local, and foreign texts cannot control the terminal.
package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
)

const (
	// indent is the indentation of lines below a heading.
	indent = 10
	// defaultWidth is used when output is not a terminal.
	defaultWidth = 80
	// maxRows bounds the listed streams of each state.
	maxRows = 10
	// minStuck is how long a change must block a sink before it is shown: most errors pass.
	minStuck = time.Minute
	// maxError bounds the length of an error: some servers send pages.
	maxError = 400
)

// page collects lines of some width.
type page struct {
	strings.Builder
	width int
	now   time.Time
	// unread reports that the journal cannot be read, so that its numbers are unknown.
	unread bool
}

func newPage(width int, now time.Time) *page {
	if width <= 0 {
		width = defaultWidth
	}
	return &page{width: max(width, 40), now: now}
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// Status writes the state of a daemon, in lines of width columns; 0 means 80.
func Status(w io.Writer, s *control.Status, now time.Time, width int) error {
	p := newPage(width, now)
	if s.Starting != "" { // nothing else is known
		p.line("tattler %s is starting: process %d, up %s", s.Version, s.PID, age(now.Sub(s.Started)))
		p.text(0, "It is %s. Changes made meanwhile are recorded later, as far as the API server still has them.", s.Starting)
		p.line("")
		p.line("%-*s%s", indent, "Journal", clean(s.Journal.Path))
		_, err := io.WriteString(w, p.String())
		return err
	}
	p.unread = s.Journal.ReadError != ""
	p.line("tattler %s records %s: process %d, up %s", s.Version, names(s), s.PID, age(now.Sub(s.Started)))
	switch {
	case len(s.Clusters) > 0:
		p.clusters(s.Clusters)
	case !s.Settled:
		p.text(0, "It has just started: not everything is recorded yet.")
	}
	if s.Away != "" && len(s.Clusters) == 0 {
		p.text(0, "The API server cannot be reached for %s: %s", age(now.Sub(s.AwaySince)), s.Away)
	}
	if len(s.UnfilledRules) > 0 {
		p.text(0, "Redaction rules name kinds that the server does not have (yet): %s", strings.Join(s.UnfilledRules, ", "))
	}
	p.line("")
	p.streams(s.Streams)
	p.rights(s)
	p.line("")
	p.sinks(s.Sinks)
	for _, name := range s.Left {
		p.text(indent, "%s is no longer configured, but the journal keeps its cursor: tattler sinks remove %s", name, name)
	}
	p.traces(s.Traces)
	p.line("")
	p.journal(&s.Journal)
	_, err := io.WriteString(w, p.String())
	return err
}

// Sinks writes a table of sinks, in lines of width columns; 0 means 80.
func Sinks(w io.Writer, sinks []control.Sink, now time.Time, width int) error {
	p := newPage(width, now)
	p.table(0, sinks)
	_, err := io.WriteString(w, p.String())
	return err
}

func (p *page) streams(all []control.Stream) {
	objects, of := 0, map[control.StreamState][]control.Stream{}
	for _, s := range all {
		objects += s.Objects
		of[s.State] = append(of[s.State], s)
	}
	var counts []string
	for _, state := range control.StreamStates() {
		if n := len(of[state]); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(all) == 0 {
		p.line("%-*snone yet", indent, "Streams")
		return
	}
	p.line("%-*s%s; %s", indent, "Streams", strings.Join(counts, ", "), Count(int64(objects), "object"))
	for _, state := range []control.StreamState{control.Waiting, control.Forbidden, control.Gone, control.Listing} {
		for i, s := range of[state] {
			if i == maxRows {
				p.line("%*sand %d more that are %s (-o json has all)", indent, "", len(of[state])-i, state)
				break
			}
			p.stream(&s)
		}
	}
}

func (p *page) stream(s *control.Stream) {
	text := fmt.Sprintf("%-9s %s", s.State, clean(s.Resource))
	if s.Cluster != "" {
		text += " of cluster " + clean(s.Cluster)
	}
	if s.Namespace != "" {
		text += " in " + clean(s.Namespace)
	}
	if s.Selection != "" {
		text += " with " + clean(s.Selection)
	}
	if !s.Since.IsZero() {
		text += ", for " + age(p.now.Sub(s.Since))
	}
	if !s.TryingSince.IsZero() && s.TryingSince.Before(s.Since) {
		text += ", not live for " + age(p.now.Sub(s.TryingSince))
	}
	p.text(indent, "%s", text)
	if s.Error != "" {
		p.text(indent+indent, "%s%s", s.Error, p.ago(s.ErrorAt))
	}
}

func (p *page) sinks(all []control.Sink) {
	if len(all) == 0 {
		p.line("%-*snone: changes are recorded only", indent, "Sinks")
		return
	}
	p.line("Sinks")
	p.table(indent, all)
}

// table writes a row for each sink, with remarks below it. Without a daemon there are no counts.
func (p *page) table(in int, all []control.Sink) {
	rows := [][]string{{"NAME", "STATE", "BEHIND", "LAG", "DELIVERED", "DEAD", "LOST"}}
	for _, s := range all {
		delivered, lost := "-", "-" // since a daemon's start
		if s.To != "" {
			delivered, lost = fmt.Sprint(s.Delivered), fmt.Sprint(s.Lost)
		}
		behind, lag, dead := fmt.Sprint(s.Behind), age(time.Duration(s.LagSeconds*float64(time.Second))), fmt.Sprint(s.Dead)
		if p.unread {
			behind, lag, dead = "?", "?", "?"
		}
		rows = append(rows, []string{clean(s.Name), s.State, behind, lag, delivered, dead, lost})
	}
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			widths[i] = max(widths[i], columns(cell))
		}
	}
	for i, r := range rows {
		var line strings.Builder
		for c, cell := range r {
			fill := strings.Repeat(" ", widths[c]-columns(cell))
			if c < 2 { // words; the others are numbers
				line.WriteString(cell + fill + "  ")
			} else {
				line.WriteString(fill + cell + "  ")
			}
		}
		p.line("%*s%s", in, "", strings.TrimRight(line.String(), " "))
		if i > 0 {
			p.sink(in+2, &all[i-1])
		}
	}
}

// sink writes a sink's problems.
func (p *page) sink(in int, s *control.Sink) {
	if s.Error != "" && !s.Passed() {
		text := s.Error
		if !s.ErrorAt.IsZero() {
			text += fmt.Sprintf(" (%s ago", age(p.now.Sub(s.ErrorAt)))
			if s.RetryAt.After(p.now) {
				text += ", tried again in " + age(s.RetryAt.Sub(p.now))
			}
			text += ")"
		}
		p.text(in, "%s", text)
	}
	if st := s.Stuck; st != nil && p.now.Sub(st.Since) >= minStuck {
		end := ""
		if !st.GiveUpAt.IsZero() {
			end = "; it becomes a dead letter in " + age(st.GiveUpAt.Sub(p.now))
		}
		p.text(in, "change %s (%s) has blocked it for %s, after %s%s: tattler sinks skip %s %s makes it a dead letter now",
			st.ID, st.Subject, age(p.now.Sub(st.Since)), Count(int64(st.Attempts), "attempt"), end, s.Name, st.ID)
	}
	if s.Held > 0 {
		p.text(in, "holds %s, to send later", Count(s.Held, "change"))
	}
	if s.FilterErrors > 0 {
		p.text(in, "its where failed on %s, delivered anyway: %s", Count(s.FilterErrors, "change"), s.FilterError)
	}
	if s.Dead > 0 {
		p.text(in, "%s: tattler sinks dead %s", Count(s.Dead, "dead letter"), s.Name)
	}
}

func (p *page) journal(j *control.Journal) {
	p.line("%-*s%s", indent, "Journal", clean(j.Path))
	if p.unread {
		p.text(indent, "it cannot be read: %s", j.ReadError)
	} else {
		p.held(j)
	}
	text := fmt.Sprintf("%s recorded since the start, %d of them quiet", Count(j.Recorded, "change"), j.Quiet)
	if j.Removed > 0 {
		text += fmt.Sprintf("; %d old ones removed", j.Removed)
	}
	p.text(indent, "%s", text)
	if j.Error != "" {
		p.text(indent, "it cannot be written since %s: %s", stamp(j.ErrorAt), j.Error)
	}
}

// held describes the journal's contents.
func (p *page) held(j *control.Journal) {
	bounds := "in use"
	if j.Limit > 0 {
		bounds = fmt.Sprintf("of %s in use", size(j.Limit))
	}
	if j.Age > 0 {
		bounds += fmt.Sprintf(", changes are kept for %s", age(time.Duration(j.Age)*time.Second))
	}
	p.text(indent, "%s %s", size(j.Used), bounds)
	if j.Crowded() {
		p.text(indent, "the last states of watched objects take %s, half of that or more: see docs/operations.md, Sizing", size(j.States))
	}
	if j.Short(p.now) {
		of := ""
		if j.CutNamespace != "" {
			of = " of namespace " + clean(j.CutNamespace)
		}
		if j.CutCluster != "" {
			of += " of cluster " + clean(j.CutCluster)
		}
		p.text(indent, "lack of space cuts the history short: changes%s seen until %s (%s ago) were removed; see docs/operations.md, Sizing", of, stamp(j.Cut), age(p.now.Sub(j.Cut)))
	}
	if j.ClockJump != 0 {
		jump, where := time.Duration(j.ClockJump)*time.Second, "ahead of"
		if jump < 0 {
			jump, where = -jump, "behind"
		}
		p.text(indent, "the clock is %s %s the elapsed time: for another %s, changes are removed by age only if they are old by both", age(jump), where, age(time.Duration(j.ClockHold)*time.Second))
	}
	if j.Last == 0 {
		p.text(indent, "it holds no change yet")
	} else {
		p.text(indent, "it holds changes seen from %s to %s", stamp(j.Oldest), stamp(j.Newest))
	}
}

// traces describes the export of traces.
func (p *page) traces(t *control.Traces) {
	if t == nil {
		return
	}
	p.line("")
	p.line("%-*s%s", indent, "Traces", clean(t.To))
	p.text(indent, "%s exported, %d dropped, %d waiting", Count(t.Exported, "span"), t.Dropped, t.Queued)
	if t.Error != "" {
		p.text(indent, "%s%s", t.Error, p.ago(t.ErrorAt))
	}
}

// ago says how long ago an error happened, after its text.
func (p *page) ago(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf(" (%s ago)", age(p.now.Sub(at)))
}

// text writes a foreign text, broken into lines.
func (p *page) text(in int, format string, args ...any) {
	words := strings.Fields(cut(clean(fmt.Sprintf(format, args...)), maxError))
	line := ""
	for _, word := range words {
		if line != "" && columns(line)+1+columns(word) > p.width-in {
			p.line("%*s%s", in, "", line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	p.line("%*s%s", in, "", line)
}
