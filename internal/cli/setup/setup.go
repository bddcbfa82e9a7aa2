// Package setup is shared by run, config check, rbac and doctor: the flags that make a configuration, and their translation for the
// packages below.
package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/selection"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Flags are the flags of run that make a configuration.
type Flags struct {
	// Program has the list of sinks; nil means tattler.
	Program *kinds.Program

	Kube    kube.Flags
	Objects selection.Objects
	// Types are the arguments, as in watch.
	Types []string
	Noise bool
	// File is a configuration, To are addresses of sinks.
	File    string
	To      []string
	Journal string
	// Cluster is one of several clusters of File; see Only.
	Cluster string
	// Alone reads nothing but File: the other files and the variables that it names may be those of another machine.
	Alone bool
}

// AddWatch declares the flags that select the cluster and the watched objects.
func (f *Flags) AddWatch(cmd *cobra.Command) {
	f.watch(cmd)
	f.Kube.Add(cmd)
}

// Add declares all flags.
func (f *Flags) Add(cmd *cobra.Command) {
	f.watch(cmd)
	cmd.Flags().StringArrayVar(&f.To, "to", nil, "deliver to this `address`; repeatable")
	cmd.Flags().StringVar(&f.Journal, "journal", "", "journal `file`; default: journal.path of the configuration, $"+kube.JournalVariable+", or the journal of the current context")
	complete.Files(cmd, "journal")
	f.Kube.Add(cmd)
}

// AddCluster declares the flag that chooses one of several clusters of a file.
func (f *Flags) AddCluster(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Cluster, "cluster", "", "one of the file's clusters, by `name`")
}

func (f *Flags) watch(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&f.File, "config", "c", "", "configuration `file` (see tattler config)")
	complete.Files(cmd, "config")
	f.Objects.Add(fs, "all")
	fs.BoolVar(&f.Noise, "noise", false, "include noisy kinds (events, leases, ...)")
}

// Setup is the configuration from flags or a file.
type Setup struct {
	*config.Config
	program *kinds.Program
	// Scopes select the watched objects: one for each element of Config.Watch, or one for the command line.
	Scopes []capture.Scope
	// Watched are several clusters, with scopes of their own; empty if there is only one.
	Watched []Watched

	within string // where watch is in the file, if not at its top
	part   bool   // it is one of several clusters
}

// Load makes the setup without contacting the cluster. An invalid flag is a *usage.Error, an invalid file
// config.Errors.
func (f *Flags) Load() (*Setup, error) {
	if err := f.Objects.Validate(); err != nil {
		return nil, err
	}
	program := cmp.Or(f.Program, kinds.Tattler())
	loader, c := config.Loader{Sinks: program.Types(), Traces: newTraceOptions, Alone: f.Alone}, config.Default()
	if f.File != "" {
		if len(f.Types) > 0 || f.Objects.Given() || f.Noise {
			return nil, usage.Errorf("-c selects the watched objects: leave out TYPE, and the selecting flags")
		}
		var err error
		if c, err = loader.Load(f.File); err != nil {
			return nil, err
		}
	}
	to := f.To
	if len(to) == 0 && f.File == "" {
		to = []string{"-"}
	}
	for _, address := range to {
		s, err := loader.SinkFromURL(address)
		if err != nil {
			return nil, usage.Errorf("%v", err) // it names the flag
		}
		if err := c.Add(s); err != nil {
			return nil, usage.Errorf("--to: %v", err)
		}
	}
	// The verbs that read the journal use the same order: flags and files take precedence over the environment.
	c.Journal.Path = cmp.Or(f.Journal, c.Journal.Path, os.Getenv(kube.JournalVariable))
	watched, err := f.watched(c)
	if err != nil {
		return nil, err
	}
	return &Setup{Config: c, program: program, Scopes: f.scopes(c), Watched: watched}, nil
}

func (f *Flags) scopes(c *config.Config) []capture.Scope {
	if len(c.Watch) == 0 {
		return []capture.Scope{{
			Types: f.Types, Namespaces: f.Objects.Within(selection.Namespaces{}),
			Labels: f.Objects.Labels, Fields: f.Objects.Fields, Noise: f.Noise,
		}}
	}
	var all []capture.Scope
	for _, w := range c.Watch {
		s := capture.Scope{
			Except:     w.Resources.Exclude,
			Namespaces: selection.Namespaces{Include: w.Namespaces.Include, Exclude: w.Namespaces.Exclude},
			Labels:     w.LabelSelector, Fields: w.FieldSelector, Noise: w.Noise,
		}
		if len(w.Resources.Include) > 0 {
			s.Types = []string{strings.Join(w.Resources.Include, ",")}
		}
		if slices.Contains(s.Namespaces.Include, "*") { // all, including cluster-scoped kinds
			s.Namespaces.Include = nil
		}
		all = append(all, s)
	}
	return all
}

// ClusterName returns the cluster's name in events. In a pod, only the configuration can name the cluster. Otherwise the
// name is derived from the UID of the namespace kube-system, because ids and sources of events must differ between
// clusters.
func (s *Setup) ClusterName(ctx context.Context, cluster *kube.Cluster) (name string, derived bool, err error) {
	if name = s.KnownName(cluster); name != "" {
		return name, false, nil
	}
	c, err := informer.NewCluster(cluster.Config, informer.Options{})
	if err != nil {
		return "", false, err
	}
	uid, err := c.Identity(ctx)
	if err == nil && uid == "" {
		err = errors.New("the namespace kube-system cannot be read")
	}
	switch {
	case capture.Transient(err):
		return "", false, fmt.Errorf("derive the cluster's name from its namespace kube-system: %w", err)
	case err != nil:
		return "", false, fmt.Errorf("the cluster has no name: set cluster.name (a pod has no context, and the name cannot be derived: %w)", err)
	}
	return "cluster-" + uid[:min(8, len(uid))], true, nil
}

// KnownName returns the name of the cluster if that is known without a request; empty in a pod without cluster.name.
func (s *Setup) KnownName(cluster *kube.Cluster) string {
	if s.Cluster.Name != "" || cluster.InPod {
		return s.Cluster.Name
	}
	return cluster.Name
}

// JournalFile returns the journal's absolute path.
func (s *Setup) JournalFile(cluster *kube.Cluster) (path string, err error) {
	if path = s.Journal.Path; path == "" && (s.Several() || s.part) {
		return "", s.Blame("clusters", "%v", errNoJournal)
	} else if path == "" {
		if path, err = cluster.Journal(); err != nil {
			return "", err
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", fmt.Errorf("find the journal: %w", err)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("the journal %s is not a regular file: choose another", path)
	}
	return path, nil
}

// KeyFile returns the path of the key for hidden values. A configured file must exist: otherwise a pod that has lost its
// volume would make a new key at each start.
func (s *Setup) KeyFile() (string, error) {
	path := s.RedactionKey
	if path == "" {
		return kube.RedactionKey()
	}
	if _, err := os.Stat(path); err != nil {
		return "", s.Blame("redactionKey", "%v: the file must exist, because hidden values seem to change with a new key; to make one: head -c 32 /dev/urandom | base64", err)
	}
	return path, nil
}

// Explain adds the position in the file to an error about an unknown kind.
func (s *Setup) Explain(err error) error {
	var (
		unknown   *capture.UnknownTypeError
		ambiguous *capture.AmbiguousTypeError
		typ       string
	)
	switch {
	case errors.As(err, &unknown):
		typ = unknown.Type
	case errors.As(err, &ambiguous):
		typ = ambiguous.Type
	default:
		return err
	}
	for i, r := range s.Redact { // in the order in which they are looked up
		for j, text := range r.Resources {
			if strings.EqualFold(text, typ) && unknown != nil {
				if !strings.Contains(text, ".") && len(unknown.Verbs) == 0 {
					err = fmt.Errorf("%w; for a custom resource that does not exist yet, write PLURAL.GROUP", err)
				}
				return s.Blame(fmt.Sprintf("redact[%d].resources[%d]", i, j), "%v", err)
			}
		}
	}
	for i, w := range s.Watch {
		for _, l := range []struct {
			key  string
			list []string
		}{{"include", w.Resources.Include}, {"exclude", w.Resources.Exclude}} {
			if j := slices.Index(l.list, typ); j >= 0 {
				return s.Blame(s.within+fmt.Sprintf("watch[%d].resources.%s[%d]", i, l.key, j), "%v", err)
			}
		}
	}
	return err
}
