package log

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
)

// statRows is the default number of rows of each table.
const statRows = 10

// counter counts the selected changes. It reads them one by one, and keeps a row for each key.
type counter struct {
	*lister
	total                    tally
	gaps, absences           int
	objects, managers, paths *table
}

// run counts all changes, and prints the tables.
func (t *counter) run(ctx context.Context) error {
	t.objects, t.managers, t.paths = newTable(), newTable(), newTable()
	if err := t.prepare(ctx); err != nil {
		return err
	}
	for e, err := range t.rows(ctx, journal.Query{OldestFirst: true}) {
		if err != nil {
			return err
		}
		if err := t.count(ctx, &e); err != nil {
			return err
		}
	}
	write := t.text
	if t.o.Output == render.JSON {
		write = t.json
	}
	if err := write(); err != nil {
		return err
	}
	notes, err := t.notes(ctx)
	if err != nil {
		return err
	}
	if err := t.sumUp(notes); err != nil {
		return err
	}
	return t.complain("counted")
}

func (t *counter) count(ctx context.Context, e *journal.Entry) error {
	c, err := t.journal.Change(ctx, e)
	switch {
	case errors.Is(err, journal.ErrNotFound): // retention has removed it meanwhile
		return nil
	case err != nil && (ctx.Err() != nil || !history.Damaged(err)):
		return err
	case err != nil:
		t.damaged++ // the end reports it
		return nil  //nolint:nilerr // the others are counted
	case !t.Matches(&c):
		return nil
	}
	t.shown++
	from, to := c.Span()
	switch c.Op {
	case event.Gap:
		t.gaps++
		return nil
	case event.Absent:
		t.absences++
		return nil
	}
	t.total.add(c.Op, from, to)
	t.objects.add(c.Kind.Cluster+"\x00"+c.Kind.GroupResource()+"\x00"+c.Namespace+"\x00"+c.Name, c.Op, from, to, func() tally { return t.object(&c) })
	for _, m := range managersIn(&c, t.Noise) {
		t.managers.add(m, c.Op, from, to, func() tally { return tally{Name: m} })
	}
	for _, p := range pathsIn(&c, t.Noise) {
		t.paths.add(p, c.Op, from, to, func() tally { return tally{Name: cmp.Or(p, "(everything)")} })
	}
	return nil
}

func (t *counter) object(c *change.Change) tally {
	cluster := ""
	if t.several {
		cluster = t.journal.ClusterOf(c.Kind)
	}
	return tally{
		Cluster: cluster, Name: render.TypeName(c.Kind, c.Names) + "/" + c.Name, Namespace: c.Namespace,
		Via: t.via(render.Object{Group: c.Kind.Group, Kind: c.Kind.Kind, Namespace: c.Namespace, Name: c.Name}),
	}
}

// stat is the result as JSON.
type stat struct {
	Changes  int        `json:"changes"`
	Created  int        `json:"created"`
	Updated  int        `json:"updated"`
	Deleted  int        `json:"deleted"`
	Gaps     int        `json:"gaps"`
	Absences int        `json:"absences"`
	First    *time.Time `json:"first,omitempty"`
	Last     *time.Time `json:"last,omitempty"`
	Objects  section    `json:"objects"`
	Managers section    `json:"managers"`
	Paths    section    `json:"paths"`
}

// section is a table as JSON.
type section struct {
	Rows []*tally `json:"rows"`
	// Distinct is the number of counted keys; Cut is how many of them have no row.
	Distinct int `json:"distinct"`
	Cut      int `json:"cut"`
	// Uncounted is the number of changes with other keys.
	Uncounted int `json:"uncounted"`
}

func (t *counter) section(of *table) section {
	s := section{Distinct: len(of.rows), Uncounted: of.beyond}
	s.Rows, s.Cut = of.top(t.o.Limit)
	if s.Rows == nil {
		s.Rows = []*tally{}
	}
	return s
}

func (t *counter) json() error {
	s := stat{
		Changes: t.total.Changes, Created: t.total.Created, Updated: t.total.Updated, Deleted: t.total.Deleted, Gaps: t.gaps, Absences: t.absences,
		Objects: t.section(t.objects), Managers: t.section(t.managers), Paths: t.section(t.paths),
	}
	if t.total.Changes > 0 {
		s.First, s.Last = &t.total.First, &t.total.Last
	}
	if err := render.WriteJSON(t.o.IO.Out, s); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
