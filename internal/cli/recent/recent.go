// Package recent shows the recent writes that a cluster itself still records, for verbs without a journal.
package recent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/reconstruct"
	"github.com/tattler-dev/tattler/internal/render"
)

// Unseen says what no reconstruction can show.
const Unseen = "Not visible: deletions, earlier values and writes."

// completeTime bounds the lists of further kinds.
const completeTime = 15 * time.Second

// Names reports whether the arguments name objects, and not only kinds: then what they own is selected, too.
func Names(types []string) bool {
	return len(types) > 1 || slices.ContainsFunc(types, func(t string) bool { return strings.Contains(t, "/") })
}

// Source lists kinds; a capture.Watcher does.
type Source interface {
	Selects(group, resource string) bool
	ListAlso(ctx context.Context, group, resource string, seen capture.Seen) *capture.Listing
}

// Complete reads what else is needed about the selected objects: the earlier templates of workloads, and with events the
// Events about named objects. It returns the kinds that could not be listed.
func Complete(ctx context.Context, s Source, c *reconstruct.Collector, events bool) (refused []capture.Refusal) {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	workloads := c.Workloads()
	also := func(group, resource string, seen capture.Seen) {
		if s.Selects(group, resource) {
			return
		}
		l := s.ListAlso(ctx, group, resource, seen)
		refused = append(refused, slices.Concat(l.Forbidden, l.Failing)...)
	}
	evidence := func(r capture.Resource, obj map[string]any, _ bool) { c.AddEvidence(r, obj) }
	if slices.Contains(workloads, "Deployment.apps") {
		also("apps", "replicasets", evidence)
	}
	if slices.Contains(workloads, "StatefulSet.apps") || slices.Contains(workloads, "DaemonSet.apps") {
		also("apps", "controllerrevisions", evidence)
	}
	if events && !s.Selects("events.k8s.io", "events") {
		also("", "events", func(r capture.Resource, obj map[string]any, _ bool) { c.Add(r, obj, false) })
	}
	return refused
}

// Printer prints reconstructed entries.
type Printer interface {
	// Heading prints a line that separates reconstructed entries from others.
	Heading(text string) error
	Reconstructed(e reconstruct.Entry) error
}

// Text prints for people.
type Text struct{ *render.Text }

// Events prints for programs. Headings go to Note.
type Events struct {
	*render.Events
	Note func(format string, args ...any)
}

// Heading passes the text to Note.
func (e *Events) Heading(text string) error {
	e.Note("%s", text)
	return nil
}

// NewPrinter returns the printer of a format: render.JSON, render.YAML, or text.
func NewPrinter(o render.Options, format, cluster string, note func(string, ...any)) (Printer, error) {
	if format != render.JSON && format != render.YAML {
		return Text{render.New(o)}, nil
	}
	e, err := render.NewEvents(render.EventsOptions{Out: o.Out, Format: format, Cluster: cluster})
	return &Events{e, note}, err
}

// Show prints what a collector has, between two headings.
func Show(p Printer, c *reconstruct.Collector, since time.Time, loc *time.Location) error {
	entries, dropped := c.Take()
	if err := p.Heading(fmt.Sprintf("reconstructed, since %s: nobody watched (sign ≈)", since.In(loc).Format(time.DateTime))); err != nil {
		return err
	}
	for _, e := range entries {
		if err := p.Reconstructed(e); err != nil {
			return err
		}
	}
	if dropped > 0 {
		if err := p.Heading(fmt.Sprintf("%d older left out", dropped)); err != nil {
			return err
		}
	}
	return p.Heading(fmt.Sprintf("%d reconstructed. %s", len(entries), Unseen))
}

// Refused describes the kinds that could not be read, in one line; empty if there are none.
func Refused(rs []capture.Refusal, explain func(error) error) string {
	if len(rs) == 0 {
		return ""
	}
	names := make([]string, len(rs))
	for i, r := range rs {
		names[i] = r.Resource.GroupResource()
		if len(r.Namespaces) > 0 {
			names[i] += " in " + strings.Join(r.Namespaces, ", ")
		}
	}
	return fmt.Sprintf("could not list %s: %v", strings.Join(names, ", "), explain(rs[0].Err))
}
