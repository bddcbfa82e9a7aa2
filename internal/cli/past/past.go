// Package past opens the journal of a cluster for the verbs that read it.
package past

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/story"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Flags select a journal.
type Flags struct {
	Kube kube.Flags
	Path string
	// Config is a configuration file; its journal is used unless Path names one.
	Config string

	// Serving opens the journal that a daemon serves, instead of a file; nil: the flags decide.
	Serving func(ctx context.Context) (Served, error)

	daemon daemonFlags
	stderr func() io.Writer // nil: discard
	found  string           // journal of a running daemon, once found
}

// Add declares the flags, for commands that use File.
func (f *Flags) Add(cmd *cobra.Command) {
	f.add(cmd, ", the journal of the only running daemon, or the journal of the current context")
}

// AddOffline declares the flags, for commands that use Default.
func (f *Flags) AddOffline(cmd *cobra.Command) { f.add(cmd, ", or the journal of the current context") }

func (f *Flags) add(cmd *cobra.Command, otherwise string) {
	cmd.Flags().StringVar(&f.Path, "journal", "", "journal `file`; default: $"+kube.JournalVariable+otherwise)
	complete.Files(cmd, "journal")
	cmd.Flags().StringVarP(&f.Config, "config", "c", "", "use the journal of this tattler run configuration `file`")
	complete.Files(cmd, "config")
	f.Kube.Add(cmd)
	f.stderr = cmd.ErrOrStderr
}

// forwardBytes bounds the versions that ReadForwards keeps in memory.
const forwardBytes = 32 << 20

// recorded is the embedded source of a Journal, beside its method Source.
type recorded = history.Source

// Journal is an open journal: the methods of a history.Source, and those that verbs share.
type Journal struct {
	recorded
	changes *history.Builder
	served  Served      // nil: a file
	path    string      // of the file
	file    os.FileInfo // when it was opened
}

// File returns the journal's absolute path, without contacting the cluster. If the flags name neither a journal nor a
// cluster, it is the journal of the only running daemon, unless a daemon records into the journal of the current context;
// a line on stderr says so. If several run elsewhere, the error names their journals.
func (f *Flags) File(ctx context.Context) (string, error) {
	if f.found != "" {
		return f.found, nil
	}
	path, err := f.Default()
	if f.named() {
		return path, err
	}
	dir, homeless := kube.Running()
	if homeless != nil {
		return path, err
	}
	running := control.Running(ctx, dir)
	switch {
	case len(running) == 0 || slices.Contains(running, path):
		return path, err
	case len(running) > 1:
		return "", usage.Errorf("%d daemons run; choose a journal: --journal %s", len(running), strings.Join(running, ", or --journal "))
	}
	note := fmt.Sprintf("using %s, the journal of the only running daemon", running[0])
	if err == nil && Exists(path) == nil {
		note = fmt.Sprintf("no daemon records into %s, the journal of the current context; %s", path, note)
	}
	if f.stderr != nil {
		fmt.Fprintln(f.stderr(), terminal.Line(note))
	}
	f.found = running[0]
	return f.found, nil
}

// named reports whether the user names a journal or a cluster.
func (f *Flags) named() bool {
	return f.Path != "" || f.Config != "" || os.Getenv(kube.JournalVariable) != "" || f.Kube.Context != "" || f.Kube.Kubeconfig != ""
}

// Default returns the journal's path whatever daemons run, for commands that need a journal that no daemon has open.
func (f *Flags) Default() (string, error) {
	path := f.Path
	if path == "" && f.Config != "" {
		s, err := (&setup.Flags{File: f.Config}).Load()
		if err != nil {
			return "", err
		}
		path = s.Journal.Path
	}
	if path = cmp.Or(path, os.Getenv(kube.JournalVariable)); path != "" {
		path, err := filepath.Abs(path)
		if err != nil {
			return "", fmt.Errorf("find the journal: %w", err)
		}
		return path, nil
	}
	cluster, err := f.Kube.Load()
	if err != nil {
		return "", fmt.Errorf("find the journal: %w; or name the journal with --journal FILE", err)
	}
	return cluster.Journal()
}

// Open opens the journal to read. It may be written meanwhile. It contacts the cluster only if the flags ask for a
// daemon there.
func (f *Flags) Open(ctx context.Context) (*Journal, error) {
	rules, err := quiet.New()
	if err != nil {
		return nil, err
	}
	if s, err := f.serving(ctx); err != nil {
		return nil, err
	} else if s != nil {
		return &Journal{recorded: s, changes: history.New(s, rules), served: s}, nil
	}
	path, err := f.File(ctx)
	if err != nil {
		return nil, err
	}
	file, err := os.Stat(path) // before opening it: a file that replaces it meanwhile is another
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	r, err := OpenReader(ctx, path)
	if err != nil {
		return nil, err
	}
	return &Journal{recorded: r, changes: history.New(r, rules), path: path, file: file}, nil
}

// OpenReader opens a journal to read; if it does not exist, the error says what to do.
func OpenReader(ctx context.Context, path string) (*journal.Reader, error) {
	if err := Exists(path); err != nil {
		return nil, err
	}
	return journal.OpenReader(ctx, path)
}

// Exists returns an error if a path cannot be a journal. An empty file is not one, and opening it for writing would create
// a journal without a cluster.
func Exists(path string) error {
	switch file, err := os.Stat(path); {
	case err == nil && !file.Mode().IsRegular(): // opening it would create files beside a folder or a device
		return fmt.Errorf("%s is not a regular file: --journal takes the file of a journal", path)
	case errors.Is(err, fs.ErrNotExist), err == nil && file.Size() == 0:
		return fmt.Errorf("there is no journal at %s: start tattler run, or name another file with --journal", path)
	}
	return nil
}

// ReadForwards prepares for a verb that reads each change once, from the oldest on: it unwinds the history of an object once.
// What was read before a purge may be returned after it, so it is not for a program that lasts, such as a server.
func (j *Journal) ReadForwards() {
	if r, ok := j.recorded.(*journal.Reader); ok {
		r.ReadForwards(forwardBytes)
	}
}

// Last returns the newest sequence number. It fails if the file was removed or replaced: nothing will be added to the one
// that is open.
func (j *Journal) Last(ctx context.Context) (int64, error) {
	if j.served != nil {
		return j.recorded.Last(ctx)
	}
	if now, err := os.Stat(j.path); err != nil || !os.SameFile(now, j.file) {
		return 0, fmt.Errorf("the journal %s was removed or replaced", j.path)
	}
	return j.recorded.Last(ctx)
}

// Oldest returns when the oldest change was seen; the zero time in an empty journal.
func (j *Journal) Oldest(ctx context.Context) (time.Time, error) {
	for e, err := range j.Rows(ctx, journal.Query{Quiet: true, Snapshots: true, OldestFirst: true, Limit: 1}) {
		return e.At, err
	}
	return time.Time{}, nil
}

// Ended returns up to when the journal is complete. It is the zero time for a new journal, and while a daemon records:
// in an idle cluster, that nothing was recorded means that nothing changed.
func (j *Journal) Ended(ctx context.Context) (time.Time, error) {
	if j.current(ctx) {
		return time.Time{}, nil
	}
	return j.RecordedUntil(ctx)
}

// statusTime bounds the request for a daemon's state, which only decides about a note. On a busy machine, a daemon may need
// seconds to answer.
const statusTime = 10 * time.Second

// current reports whether a daemon records now, and reaches an API server and the journal's disk. A daemon that does not
// answer, such as another user's, is taken to do so.
func (j *Journal) current(ctx context.Context) bool {
	if !j.Recording(ctx) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	ask := (&control.Client{Journal: j.path}).Status
	if j.served != nil {
		ask = j.served.Status
	}
	s, err := ask(ctx)
	return err != nil || records(&s)
}

// records reports whether a daemon in this state records at least one cluster.
func records(s *control.Status) bool {
	if s.Starting != "" || s.Journal.Error != "" {
		return false
	}
	for i := range s.Clusters {
		if s.Clusters[i].Away == "" {
			return true
		}
	}
	return len(s.Clusters) == 0 && s.Away == ""
}

// Path returns the path of the journal, or the address of the daemon that serves it.
func (j *Journal) Path() string {
	if j.served != nil {
		return j.served.URL()
	}
	return j.path
}

// Recording reports whether a daemon writes the journal.
func (j *Journal) Recording(ctx context.Context) bool {
	if j.served != nil {
		return j.served.Recording(ctx)
	}
	return control.Recording(ctx, j.path)
}

// Change returns the change of an entry.
func (j *Journal) Change(ctx context.Context, e *journal.Entry) (change.Change, error) {
	return j.changes.Change(ctx, e)
}

// Stories is history.Builder.Stories.
func (j *Journal) Stories(ctx context.Context, q journal.Query) iter.Seq2[story.Tree, error] {
	return j.changes.Stories(ctx, q)
}

// Story is history.Builder.Story.
func (j *Journal) Story(ctx context.Context, prefix string) (story.Tree, error) {
	return j.changes.Story(ctx, prefix)
}

// Covered is history.Builder.Covered.
func (j *Journal) Covered(ctx context.Context, s *story.Tree) ([]int64, error) {
	return j.changes.Covered(ctx, s)
}

// Each is history.Builder.Each.
func (j *Journal) Each(ctx context.Context, seqs []int64, f func(e *journal.Entry, c change.Change, damage error) error) error {
	return j.changes.Each(ctx, seqs, f)
}

// CheckStories compares the recorded stories with those that the changes make: see history.Builder.
func (j *Journal) CheckStories(ctx context.Context, found func(text string)) (compared int, err error) {
	return j.changes.CheckStories(ctx, found)
}

// ShortNames returns the short names of a kind.
func (j *Journal) ShortNames(ctx context.Context, k journal.Kind) []string {
	return j.changes.ShortNames(ctx, k)
}

// Explain returns the error for a word that matches no kind in the journal.
func (j *Journal) Explain(ctx context.Context, word string) error {
	return selection.Explain(ctx, j, word)
}

// Net returns the change that leads from one state of an object to another one: see history.Builder.Net.
func (j *Journal) Net(ctx context.Context, before, after *journal.State) (change.Change, error) {
	return j.changes.Net(ctx, before, after)
}

// Select returns the selection of states of the named objects, or of all objects of the named kinds; it fails where the journal
// has nothing of a kind or of a cluster.
func (j *Journal) Select(ctx context.Context, types []string, objects selection.Objects) (*selection.Selection, error) {
	s, err := (&selection.Options{Types: types, Objects: objects}).Parse(time.Time{})
	if err != nil {
		return nil, err
	}
	if _, err := j.Within(ctx, s.Query.Clusters); err != nil {
		return nil, err
	}
	if err = s.Resolve(ctx, j); err == nil && len(s.Types.Unknown) > 0 {
		err = j.Explain(ctx, s.Types.Unknown[0])
	}
	return s, err
}

// Unseen returns those of some namespaces, without globs, of which the journal has never had an object.
func (j *Journal) Unseen(ctx context.Context, namespaces []string) (unseen []string, err error) {
	kinds, err := j.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	var resources []string
	for _, k := range kinds {
		resources = append(resources, k.GroupResource())
	}
	for _, ns := range namespaces {
		if selection.IsGlob(ns) {
			continue
		}
		inside, err := j.Names(ctx, resources, ns, "", 1)
		if err != nil {
			return nil, err
		}
		itself, err := j.Names(ctx, []string{"namespaces"}, "", ns, 1)
		if err != nil {
			return nil, err
		}
		if len(inside) == 0 && !slices.Contains(itself, ns) {
			unseen = append(unseen, ns)
		}
	}
	return unseen, nil
}

// Blame returns an object's YAML with the change that led to each line: see history.Builder.Blame.
func (j *Journal) Blame(ctx context.Context, s *journal.State) ([]history.Line, error) {
	return j.changes.Blame(ctx, s)
}
