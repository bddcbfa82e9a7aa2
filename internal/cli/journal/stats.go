package journal

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/usage"
)

// StatsOptions are the flags of stats.
type StatsOptions struct {
	IO     *terminal.IO
	Past   past.Flags
	Output string
	// Now is the time; nil is time.Now.
	Now func() time.Time
}

// Stats prints what is in the journal.
func Stats(ctx context.Context, o *StatsOptions) error {
	if o.Output != "text" && o.Output != "json" {
		return usage.Errorf("unknown output %q: use text or json", o.Output)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	path, err := file(ctx, &o.Past)
	if err != nil {
		return err
	}
	r, err := journal.OpenReader(ctx, path)
	if err != nil {
		return err
	}
	defer r.Close()
	s, err := r.Stats(ctx)
	if err != nil {
		return err
	}
	if o.Output == "json" {
		return render.WriteJSON(o.IO.Out, summary(&s))
	}
	p := page{out: o.IO.Out, now: o.Now(), s: &s}
	return p.write()
}

// page is the text output of stats.
type page struct {
	out io.Writer
	now time.Time
	s   *journal.Stats
}

func (p *page) write() error {
	var b strings.Builder
	p.head(&b)
	p.kinds(&b)
	p.streams(&b)
	p.sinks(&b)
	_, err := io.WriteString(p.out, b.String())
	return err
}

// ago formats a time and how long ago it was.
func (p *page) ago(t time.Time) string {
	return fmt.Sprintf("%s (%s ago)", at(t), duration.HumanDuration(max(0, p.now.Sub(t))))
}

func (p *page) head(b *strings.Builder) {
	s := p.s
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "%-9s%s\n", name, fmt.Sprintf(format, args...))
	}
	line("journal", "%s", terminal.Line(s.Path))
	line("cluster", "%s (format %d)", terminal.Line(s.Cluster), s.Format)
	line("size", "%s in use, %s free, %s in the log", size(s.Used), size(s.Free), size(s.Log))
	if s.Changes == 0 {
		line("changes", "none")
	} else {
		line("changes", "%s, %s of them quiet; %s; %s each", number(s.Changes), number(s.Quiet), plural(s.Gaps, "gap", "gaps"), size(perChange(s)))
		line("oldest", "%s", p.ago(s.Oldest))
		line("newest", "%s", p.ago(s.Newest))
	}
	states := int64(0)
	for _, k := range s.Kinds {
		states += k.StatesSize
	}
	line("objects", "%s live, %s with those that are gone; last states %s", number(s.Live), number(s.Objects), size(states))
	u := &s.Uncovered
	if u.Changes > 0 {
		line("rules", "%s recorded under other redaction rules, before", plural(u.Changes, "change was", "changes were"))
		line("", "%s; tattler journal purge --older-rules removes them", maybe(u.Before))
	}
	if u.Unfinished != nil {
		line("purge", "not finished: what was removed may still be in the file;")
		line("", "tattler journal purge %s finishes it", u.Unfinished)
	}
}

// maybe formats a time that may be unknown.
func maybe(t time.Time) string {
	if t.IsZero() {
		return "?"
	}
	return at(t)
}

// perChange returns the average size of a change, with index entries, without the last states.
func perChange(s *journal.Stats) int64 {
	rest := s.Used
	for _, k := range s.Kinds {
		rest -= k.StatesSize
	}
	return max(0, rest) / s.Changes
}

// maxKinds is how many kinds the text output lists.
const maxKinds = 15

// table writes aligned rows; the first is the header.
func table(b *strings.Builder, rows [][]string) {
	b.WriteByte('\n')
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	_ = t.Flush() // a strings.Builder never fails
}

func (p *page) kinds(b *strings.Builder) {
	if len(p.s.Kinds) == 0 {
		return
	}
	rows := [][]string{{"KIND", "CHANGES", "QUIET", "SIZE", "LIVE", "STATES"}}
	for i, k := range p.s.Kinds {
		if i == maxKinds {
			rows = append(rows, []string{fmt.Sprintf("… %d more (-o json)", len(p.s.Kinds)-i)})
			break
		}
		rows = append(rows, []string{short(of(k.Cluster, k.GroupResource), 32), number(k.Changes), number(k.Quiet), size(k.ChangesSize), number(k.Live), size(k.StatesSize)})
	}
	table(b, rows)
}

// of names a group-resource, and its cluster unless the journal is named after it.
func of(cluster, resource string) string { return strings.TrimPrefix(cluster+" "+resource, " ") }

// short truncates a name, so that the output fits 80 columns.
func short(name string, most int) string {
	name = terminal.Line(name)
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}

func (p *page) streams(b *strings.Builder) {
	live := 0
	var rest [][]string
	for _, st := range p.s.Streams {
		if st.Head.Live && st.Head.Version != "" {
			live++
			continue
		}
		why := "list was interrupted"
		switch {
		case st.Head.Live:
			why = "an object could not be read"
		case !st.Head.EverLive:
			why = "first list was interrupted"
		}
		rest = append(rest, []string{short(of(st.Stream.Cluster, st.Stream.GroupResource), 32), short(orAll(st.Stream.Namespace), 20), why})
	}
	fmt.Fprintf(b, "\n%s, %s complete\n", plural(int64(len(p.s.Streams)), "stream", "streams"), number(int64(live)))
	if len(rest) > 0 {
		table(b, append([][]string{{"STREAM", "NAMESPACE", "STATE"}}, rest...))
	}
}

func orAll(namespace string) string {
	if namespace == "" {
		return "all"
	}
	return namespace
}

func (p *page) sinks(b *strings.Builder) {
	if len(p.s.Sinks) == 0 {
		return
	}
	rows := [][]string{{"SINK", "BEHIND", "DEAD LETTERS", "LOST", ""}}
	for _, s := range p.s.Sinks {
		state := ""
		if s.Paused {
			state = "paused"
		}
		rows = append(rows, []string{short(s.Name, 32), plural(s.Behind, "change", "changes"), number(int64(s.Dead)), number(s.Lost), state})
	}
	table(b, rows)
}
