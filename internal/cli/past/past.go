// Package past opens the journal of a cluster for the verbs that read it.
package past

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tattler-dev/tattler/internal/buildinfo"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/quiet"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/spell"
)

// Flags say which journal.
type Flags struct {
	Kube kube.Flags
	Path string
}

// Add declares the flags.
func (f *Flags) Add(fs *pflag.FlagSet) {
	fs.StringVar(&f.Path, "journal", "", "`file` of the journal; default: that of the current context")
	f.Kube.Add(fs)
}

// Journal is an open journal.
type Journal struct {
	reader *journal.Reader
	tell   *history.Teller
}

// Open opens the journal, which may be written meanwhile. The cluster is not asked.
func (f *Flags) Open(ctx context.Context) (*Journal, error) {
	path := f.Path
	if path == "" {
		cluster, err := f.Kube.Load("tattler/" + buildinfo.Version())
		if err != nil {
			return nil, err
		}
		if path, err = cluster.Journal(); err != nil {
			return nil, err
		}
	}
	rules, err := quiet.New()
	if err != nil {
		return nil, err
	}
	r, err := journal.OpenReader(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no journal at %s: tattler run writes one; --journal names another", path)
	}
	if err != nil {
		return nil, err
	}
	return &Journal{r, history.New(r, rules)}, nil
}

// Close closes the journal.
func (j *Journal) Close() error { return j.reader.Close() }

// Cluster is the name in the ids of changes.
func (j *Journal) Cluster() string { return j.reader.Cluster() }

// Rows yields the changes that a query selects.
func (j *Journal) Rows(ctx context.Context, q journal.Query) iter.Seq2[journal.Entry, error] {
	return j.reader.Rows(ctx, q)
}

// ByID returns the change with an id, or the only one whose id begins so.
func (j *Journal) ByID(ctx context.Context, prefix string) (journal.Entry, error) {
	return j.reader.ByID(ctx, prefix)
}

// Tell makes the change of an entry.
func (j *Journal) Tell(ctx context.Context, e *journal.Entry) (change.Change, error) {
	return j.tell.Change(ctx, e)
}

// Types are kinds of the journal, and names of objects; empty is all.
type Types struct{ Resources, Names []string }

// Types finds what TYPE[,TYPE…] [NAME…] and TYPE/NAME… name among what the journal has.
func (j *Journal) Types(ctx context.Context, args []string) (t Types, err error) {
	kinds, err := j.reader.Kinds(ctx)
	if err != nil {
		return t, err
	}
	slashed := slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "/") })
	types := strings.Split(args[0], ",")
	if slashed {
		types = nil
		for _, a := range args {
			typ, name, _ := strings.Cut(a, "/")
			if typ == "" || name == "" || strings.Contains(name, "/") {
				return t, capture.Usage("%q is not TYPE/NAME; where one argument has that form, all must have it", a)
			}
			types, t.Names = append(types, typ), append(t.Names, name)
		}
		if slices.Sort(types); len(slices.Compact(slices.Clone(types))) > 1 && len(t.Names) > 1 {
			return t, capture.Usage("names of several types cannot be told in one log: ask for one type")
		}
	} else {
		t.Names = args[1:]
	}
	for _, typ := range types {
		found := resolve(kinds, typ)
		if len(found) == 0 {
			return t, unknown(kinds, typ)
		}
		t.Resources = append(t.Resources, found...)
	}
	return t, nil
}

// resolve finds the kinds that a word means: those of the core group and of Kubernetes' own before others.
func resolve(kinds []journal.Kind, word string) (found []string) {
	word = strings.ToLower(word)
	name, group, qualified := strings.Cut(word, ".")
	for _, k := range kinds {
		is := name == k.Resource || name == strings.ToLower(k.Kind) || slices.Contains(history.ShortNames(k), name)
		if gr := k.GroupResource(); is && (!qualified || group == k.Group || group == k.Version+"."+k.Group) && !slices.Contains(found, gr) {
			found = append(found, gr)
		}
	}
	return found
}

func unknown(kinds []journal.Kind, word string) error {
	var known []string
	for _, k := range kinds {
		known = append(known, k.Resource)
	}
	if near := spell.Nearest(word, known); near != "" {
		return fmt.Errorf("the journal has no %q; did you mean %q?", word, near)
	}
	return fmt.Errorf("the journal has no %q: nothing of that kind was recorded", word)
}
