package log

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
)

// barWidth is the number of columns of the longest bar.
const barWidth = 10

// text prints the totals and the tables.
func (t *counter) text() error {
	var b strings.Builder
	if t.total.Changes > 0 {
		fmt.Fprintf(&b, "%s of %s: %d created, %d updated, %d deleted\n%s to %s\n", count(t.total.Changes, "change"),
			count(len(t.objects.rows), "object"), t.total.Created, t.total.Updated, t.total.Deleted, t.stamp(t.total.First), t.stamp(t.total.Last))
	}
	if t.gaps+t.absences > 0 {
		fmt.Fprintf(&b, "! changes may be missing: %s, %s\n", count(t.gaps, "gap"), count(t.absences, "absence"))
	}
	tables := []*statTable{{title: "OBJECT", what: "object", of: t.objects}, {title: "MANAGER", what: "manager", of: t.managers}, {title: "PATH", what: "path", of: t.paths}}
	widest := 0
	for _, s := range tables {
		t.fill(s)
		widest = max(widest, s.widest)
	}
	for _, s := range tables {
		t.table(&b, s, widest)
	}
	if _, err := t.o.IO.Out.Write([]byte(b.String())); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// statTable is a table and its rows with the most changes.
type statTable struct {
	title, what string
	of          *table
	rows        []*tally
	names       []string
	cut, widest int
}

func (t *counter) fill(s *statTable) {
	s.rows, s.cut = s.of.top(t.o.Limit)
	for _, r := range s.rows {
		name := r.Name
		if r.Namespace != "" && t.manyNamespaces() {
			name = r.Namespace + " " + name
		}
		if r.Cluster != "" {
			name = r.Cluster + " " + name
		}
		name = terminal.Line(name)
		s.names = append(s.names, name)
		s.widest = max(s.widest, utf8.RuneCountInString(name))
	}
}

// table prints a table, with names of some columns.
func (t *counter) table(b *strings.Builder, s *statTable, widest int) {
	if len(s.rows) == 0 {
		return
	}
	widest, layout := max(widest, 8), t.layout()
	const counts = "%7s %5s %6s %5s"
	if w := t.o.IO.Width(); w > 0 {
		fixed := 1 + 7 + 1 + 5 + 1 + 6 + 1 + 5 + 2 + barWidth + 2*(2+len(layout))
		widest = min(widest, max(w-fixed, 12))
	}
	line := func(name, bar, first, last string, numbers ...any) {
		fmt.Fprintf(b, "%s %s  %-*s  %-*s  %s\n", padded(name, widest), fmt.Sprintf(counts, numbers...), barWidth, bar, len(layout), first, last)
	}
	b.WriteString("\n")
	line(s.title, "", "FIRST", "LAST", "CHANGES", "+", "~", "-")
	for i, r := range s.rows {
		line(s.names[i], bar(r, s.rows[0].Changes), t.at(r.First, layout), t.at(r.Last, layout), fmt.Sprint(r.Changes), number(r.Created), number(r.Updated), number(r.Deleted))
	}
	if s.cut > 0 {
		fmt.Fprintf(b, "… %d more (--limit 0 shows all)\n", s.cut)
	}
	if of := s.of; of.beyond > 0 {
		fmt.Fprintf(b, "… %s with further %ss: only %d are counted; select fewer changes\n", count(of.beyond, "change"), s.what, of.max)
	}
}

// number leaves out zeros, so that the others stand out.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// bar shows a row's share of the most changes, by operation. Every operation that occurs has a column.
func bar(r *tally, most int) string {
	var b strings.Builder
	for _, p := range []struct {
		n    int
		sign string
	}{{r.Created, "+"}, {r.Changes - r.Created - r.Deleted, "~"}, {r.Deleted, "-"}} {
		if p.n > 0 {
			b.WriteString(strings.Repeat(p.sign, max(1, p.n*(barWidth-2)/most)))
		}
	}
	return b.String()
}

// padded cuts or fills a text.
func padded(s string, columns int) string {
	n := utf8.RuneCountInString(s)
	if n > columns {
		r := []rune(s)
		return string(r[:columns-1]) + "…"
	}
	return s + strings.Repeat(" ", columns-n)
}

// manyNamespaces reports whether names need their namespaces.
func (t *counter) manyNamespaces() bool {
	namespace := ""
	for _, r := range t.objects.rows {
		if r.Namespace != "" && namespace != "" && r.Namespace != namespace {
			return true
		}
		if r.Namespace != "" {
			namespace = r.Namespace
		}
	}
	return false
}

// layout is the form of times: without the date if all are of today, and as elsewhere in a pipe.
func (t *counter) layout() string {
	if !t.o.IO.OutTTY {
		return time.RFC3339
	}
	now := t.o.Now()
	if t.total.First.In(now.Location()).Format(time.DateOnly) != now.Format(time.DateOnly) {
		return "01-02 15:04"
	}
	return time.TimeOnly
}

func (t *counter) at(at time.Time, layout string) string {
	return at.In(t.o.Now().Location()).Format(layout)
}
