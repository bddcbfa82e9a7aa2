package log

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/recent"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	quietrules "github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/reconstruct"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/usage"
)

// recentSince is the default of --since without a journal.
const recentSince = time.Hour

// reconstruct shows what the cluster itself still records, because there is no journal at path.
func (o *Options) reconstruct(ctx context.Context, s *selected, path string) error {
	if err := o.needsJournal(path); err != nil {
		return err
	}
	since := s.Query.Since
	if since.IsZero() {
		since = o.Now().Add(-recentSince)
	}
	cluster, err := o.Past.Kube.Load()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	rules, err := quietrules.New()
	if err != nil {
		return err
	}
	c := reconstruct.NewCollector(reconstruct.Options{
		Since: since, Until: s.Query.Until, Rules: rules, Noise: o.Noise, Only: s.Paths, Managers: o.Managers,
		Severities: s.Query.Severities, Humans: o.Humans, Follow: recent.Names(o.Types), Limit: o.Limit,
	})
	w, err := o.lister(cluster, s, rules)
	if err != nil {
		return err
	}
	note := func(format string, args ...any) {
		fmt.Fprintln(o.IO.Err, terminal.Line(fmt.Sprintf(format, args...)))
	}
	note("no journal at %s: showing what the cluster itself still records; `tattler run` records everything", path)
	l, err := w.List(ctx, c.Add)
	if isUsage(err) {
		return err
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("there is no journal at %s, and the cluster cannot be read: %w", path, cluster.ExplainStart(err))
	}
	if l == nil {
		return nil // Ctrl-C
	}
	if err := listed(l, cluster); err != nil {
		return err
	}
	refused := append(append(l.Forbidden, l.Failing...), recent.Complete(ctx, w, c, recent.Names(o.Types))...)
	if said := recent.Refused(refused, cluster.Explain); said != "" {
		note("%s", said)
	}
	if len(l.Absent) > 0 {
		note("no %s", strings.Join(l.Absent, ", "))
	}
	if len(l.Hidden) > 0 {
		note("left out: %s (--noise)", strings.Join(l.Hidden, ", "))
	}
	out, err := recent.NewPrinter(o.recentRendering(s), o.Output, cluster.Name, note)
	if err != nil {
		return err
	}
	return recent.Show(out, c, since, o.Now().Location())
}

// isUsage reports whether an error is about the arguments, not about the cluster.
func isUsage(err error) bool {
	var (
		usage     *usage.Error
		unknown   *capture.UnknownTypeError
		ambiguous *capture.AmbiguousTypeError
	)
	return errors.As(err, &usage) || errors.As(err, &unknown) || errors.As(err, &ambiguous)
}

// needsJournal refuses what cannot be reconstructed.
func (o *Options) needsJournal(path string) error {
	const leaveOut = "leave it out to see what the cluster itself still records"
	var flag, instead string
	switch {
	case o.Follow:
		flag, instead = "-f", "tattler watch --since shows live changes"
	case len(o.Ops) > 0:
		flag, instead = "--op", leaveOut
	case o.Where != "":
		flag, instead = "--where", leaveOut
	case o.Tree:
		flag, instead = "--tree", leaveOut
	case o.Related:
		flag, instead = "--related", leaveOut
	case o.Stat:
		flag, instead = "--stat", leaveOut
	case o.HTML != "":
		flag, instead = "--html", leaveOut
	case o.Story != "":
		flag, instead = "--story", leaveOut
	case o.Output == oneline:
		flag, instead = "-o oneline", "use -o text to see what the cluster itself still records"
	default:
		return nil
	}
	return fmt.Errorf("%s needs a journal, and there is none at %s: tattler run writes one, --journal names another; %s", flag, path, instead)
}

// lister returns what lists the selected objects.
func (o *Options) lister(cluster *kube.Cluster, s *selected, rules *quietrules.Set) (*capture.Watcher, error) {
	redactor, err := redact.New(redact.NewRandomKey(), nil)
	if err != nil {
		return nil, err
	}
	w, err := capture.New(capture.Options{
		Config: cluster.Config, Scopes: []capture.Scope{{Types: o.Types, Namespaces: s.Namespaces, Labels: o.Labels, Fields: o.Fields, Noise: o.Noise}},
		Owned: true, Redactor: redactor, Quiet: rules,
	})
	if err != nil {
		return nil, fmt.Errorf("context %q of the kubeconfig: %w", cluster.Name, err)
	}
	return w, nil
}

// listed returns an error if nothing could be listed.
func listed(l *capture.Listing, cluster *kube.Cluster) error {
	switch {
	case l.Kinds > 0:
		return nil
	case len(l.Forbidden) > 0:
		return fmt.Errorf("may not list %s: %w; request the right to list, or choose a namespace that you may read with -n",
			l.Forbidden[0].Resource.GroupResource(), l.Forbidden[0].Err)
	case len(l.Failing) > 0:
		return fmt.Errorf("list %s: %w", l.Failing[0].Resource.GroupResource(), cluster.Explain(l.Failing[0].Err))
	case len(l.Unmatched) > 0:
		return fmt.Errorf("no kind matches %s", strings.Join(l.Unmatched, ", "))
	}
	return errors.New("nothing can be listed there")
}

func (o *Options) recentRendering(s *selected) render.Options {
	return render.Options{
		Out: o.IO.Out, Terminal: o.IO.OutTTY, Today: o.Now, Color: o.IO.Color, Width: o.IO.Width(), Location: o.Now().Location(),
		Namespaces: s.Namespaces.One() == "", Full: o.Full, Only: s.Paths,
	}
}
