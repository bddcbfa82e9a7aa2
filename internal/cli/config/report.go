package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"text/tabwriter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/daemon"
)

// report writes what a check found: first what would be done, then what is doubtful.
type report struct {
	w        io.Writer
	setup    *setup.Setup
	alone    bool // only the file is read
	warnings []string
	// problem is why tattler run would not start, or record nothing.
	problem error
}

func (r *report) line(format string, args ...any) { fmt.Fprintf(r.w, format+"\n", args...) }

func (r *report) warn(format string, args ...any) {
	r.warnings = append(r.warnings, terminal.Line(fmt.Sprintf(format, args...)))
}

// end writes the warnings, and returns the problem.
func (r *report) end() error {
	for _, w := range r.warnings {
		r.line("warning: %s", w)
	}
	return r.problem
}

// offline writes what the file alone says.
func (r *report) offline() {
	path := r.setup.Journal.Path
	if path == "" && r.setup.Several() {
		path = "?"
		if _, err := r.setup.JournalFile(nil); err != nil {
			r.wrong(err)
		}
	} else if path == "" {
		path = "that of the context, below $XDG_STATE_HOME/tattler"
	}
	r.line("Not asked: whether the server has these kinds, and whether they may be watched.")
	r.line("Not read: the keys, certificates, credentials and variables that the file names.")
	if !r.setup.Several() {
		r.watched("Watched", r.setup.Scopes)
	}
	for i := range r.setup.Watched {
		r.watched("Watched in "+r.setup.Watched[i].Name, r.setup.Watched[i].Scopes)
	}
	r.rest(path)
}

// watched writes what scopes select.
func (r *report) watched(title string, scopes []capture.Scope) {
	for i := range scopes {
		s := &scopes[i]
		types := strings.Join(s.Types, " ")
		if types == "" {
			types = "everything"
		}
		if len(s.Except) > 0 {
			types += " without " + strings.Join(s.Except, ", ")
		}
		r.line("%s: %s, %s", title, types, place(s, true))
	}
}

// cluster writes what the server and the file say.
func (r *report) cluster(ctx context.Context, cluster *kube.Cluster, p *capture.Plan, f findings) {
	name, derived, err := r.setup.ClusterName(ctx, cluster)
	if err != nil {
		r.wrong(err)
		name = "?"
	}
	if derived {
		name += " (from the UID of the namespace kube-system; cluster.name sets another)"
	}
	r.line("Context %s, in events: %s. Watched: %s", cluster.Name, name, count(len(p.Kinds), "kind"))
	r.kinds(cluster, p, f)
	for _, l := range []struct{ text, list string }{
		{"Left out as noisy (to include a kind, name it or set noise: true): %s", strings.Join(p.Hidden, ", ")},
		{"No kind matches (yet): %s", strings.Join(p.Unmatched, ", ")},
	} {
		if l.list != "" {
			r.line(l.text, l.list)
		}
	}
	r.rights(f)
	r.idle(p)
	r.rules(p.Catalog)
	if failed := p.Catalog.Failed(); len(failed) > 0 {
		r.warn("no answer from the API groups %s: what they have is not known", strings.Join(failed, ", "))
	}
	path, err := r.setup.JournalFile(cluster)
	if err != nil {
		r.wrong(err)
	}
	r.rest(path, f.kinds...)
}

// kinds writes a row for each kind.
func (r *report) kinds(cluster *kube.Cluster, p *capture.Plan, f findings) {
	t := tabwriter.NewWriter(r.w, 0, 0, 3, ' ', 0)
	fmt.Fprint(t, "KIND\tWHERE\tOBJECTS\n")
	for i, k := range p.Kinds {
		found := f.kinds[i]
		objects := fmt.Sprint(found.objects)
		switch {
		case found.unknown != nil:
			objects = "?"
			if !apierrors.IsForbidden(found.unknown) { // rights say that below
				r.warn("%s: cannot be counted: %v", k.Resource.GroupResource(), cluster.Explain(found.unknown))
			}
		case found.more:
			objects = "some" // the server counts what a selector selects only by listing it
		case slices.ContainsFunc(k.Streams, func(s capture.Selected) bool { return s.Filtered }):
			objects = "at most " + objects // it counts all namespaces
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", k.Resource.GroupResource(), where(&r.setup.Scopes[k.Scope], k), objects)
	}
	_ = t.Flush() // the writer below keeps its errors
}

// where says which objects of a kind are watched.
func where(s *capture.Scope, k capture.Planned) string {
	var names []string
	for _, st := range k.Streams {
		if st.Name != "" && s.Fields == "" {
			names = append(names, st.Name)
		}
	}
	text := place(s, k.Resource.Namespaced)
	if len(names) > 0 {
		text += ", named " + strings.Join(names, ", ")
	}
	return text
}

// place says where a scope's objects are, and how they are selected.
func place(s *capture.Scope, namespaced bool) string {
	text := "the cluster"
	if namespaced {
		text = s.Namespaces.String()
	}
	if s.Labels != "" {
		text += ", labels " + s.Labels
	}
	if s.Fields != "" {
		text += ", fields " + s.Fields
	}
	return text
}

// idle warns of elements of watch that select nothing.
func (r *report) idle(p *capture.Plan) {
	for i := range r.setup.Watch {
		used := slices.ContainsFunc(p.Kinds, func(k capture.Planned) bool { return k.Scope == i })
		waits := slices.ContainsFunc(p.Globs, func(g capture.Glob) bool { return g.Scope == i && slices.Contains(p.Unmatched, g.Pattern) })
		if !used && !waits {
			r.warn("%v", r.setup.Blame(fmt.Sprintf("watch[%d]", i), "no kind is left for it: an element before it has what it selects, or that is noise or excluded"))
		}
	}
}

// rules warns of rules that select no kind of the server. Of redaction rules these are such as may come to have one:
// others stop the plan.
func (r *report) rules(c *capture.Catalog) {
	for _, list := range []struct {
		key   string
		rules []config.Rule
	}{{"quiet", r.setup.Quiet}, {"redact", r.setup.Redact}} {
		for i, rule := range list.rules {
			for j, text := range rule.Resources {
				if err := c.CheckRule(text); err != nil {
					r.warn("%v", r.setup.Blame(fmt.Sprintf("%s[%d].resources[%d]", list.key, i, j), "%v", err))
				}
			}
		}
	}
}

// rest writes what concerns no kind. Where the cluster was asked, what it has says how much the journal holds.
func (r *report) rest(journal string, kinds ...finding) {
	s := r.setup
	keep := []string{}
	if s.Journal.Retain.Age > 0 {
		keep = append(keep, "for "+span(s.Journal.Retain.Age))
	}
	if s.Journal.Retain.Size > 0 {
		keep = append(keep, "up to "+s.Journal.Retain.Size.String())
	}
	if len(keep) == 0 {
		keep = []string{"without bounds"}
	}
	r.line("Journal: %s, %s", journal, strings.Join(keep, ", "))
	if len(kinds) > 0 && s.Journal.Retain.Size > 0 {
		r.room(kinds)
	}
	r.key()
	if s.Listen.Address != "" {
		r.line("Listening: %s", s.Listen.Address)
	}
	r.web()
	r.sinks()
	r.traces()
}

// traces writes where traces go.
func (r *report) traces() {
	if r.alone {
		if r.setup.Traces != nil {
			r.line("Traces: %.4g%% of changes", 100*r.setup.Sample())
		}
		return
	}
	switch e, err := r.setup.MakeTraces(nil); {
	case err != nil:
		r.wrong(err)
	case e != nil:
		r.line("Traces: %.4g%% of changes, to %s", 100*r.setup.Sample(), e)
	}
}

// key writes where the redaction key is, and reads it: tattler run does not start with a wrong one.
func (r *report) key() {
	if r.alone {
		r.line("Redaction key: %s", cmp.Or(r.setup.RedactionKey, "that of the user, below $XDG_CONFIG_HOME/tattler"))
		return
	}
	file, err := r.setup.KeyFile()
	if err != nil {
		r.wrong(err)
		return
	}
	switch _, err := daemon.ReadKey(file); {
	case errors.Is(err, fs.ErrNotExist):
		file += ", to be made at the first start"
	case err != nil:
		r.wrong(err)
	}
	r.line("Redaction key: %s", file)
}

// sinks writes what each sink would get.
func (r *report) sinks() {
	if len(r.setup.Sinks) == 0 {
		r.line("No sinks: changes are journaled only.")
		return
	}
	t := tabwriter.NewWriter(r.w, 0, 0, 3, ' ', 0)
	fmt.Fprint(t, "SINK\tTO\tGETS\n")
	for i := range r.setup.Sinks {
		s := &r.setup.Sinks[i]
		to := s.Type
		if !r.alone {
			place, err := r.setup.Place(s)
			if err != nil {
				r.wrong(err)
			} else {
				to = place
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", s.Name, to, gets(s))
	}
	_ = t.Flush() // as above
}

// gets says what a sink would get.
func gets(s *config.Sink) string {
	text := []string{"every change"}
	if s.Where != "" {
		text[0] = "changes where " + terminal.Line(s.Where)
	}
	if s.Snapshots {
		text = append(text, "what exists at the start")
	}
	if len(s.Include) > 0 {
		text = append(text, "with "+strings.Join(s.Include, ", "))
	}
	if s.MaxBytes > 0 {
		text = append(text, "cut at "+s.MaxBytes.String())
	}
	if s.From == "beginning" {
		text = append(text, "from the journal's beginning")
	}
	if s.Paused {
		text = append(text, "paused")
	}
	return strings.Join(text, "; ")
}

// wrong notes the first problem; others are warnings.
func (r *report) wrong(err error) {
	if r.problem == nil {
		r.problem = err
		return
	}
	r.warn("%v", err)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
