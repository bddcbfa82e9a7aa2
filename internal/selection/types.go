package selection

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/spell"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Kinds are the kinds of a journal: *history.Builder.
type Kinds interface {
	Kinds(ctx context.Context) ([]journal.Kind, error)
	ShortNames(ctx context.Context, k journal.Kind) []string
	// Cluster is the name of the cluster of kinds that name none.
	Cluster() string
}

// Types is what the words TYPE[,TYPE…] [NAME…] or TYPE/NAME… select.
type Types struct {
	// Resources are the kinds that the journal has; Unknown are the words for which it has none. If both are empty, all
	// kinds are selected.
	Resources, Unknown []string
	// Names are names of objects; empty selects all.
	Names []string
	// Owned is what the named objects own; see journal.Query.
	Owned map[string][]string

	named map[object]bool // nil: any of Names in any of Resources
	owned map[string]bool // kinds that the named objects may own
}

type object struct{ resource, name string }

// Has reports whether an entry is of a selected object or of one that it owns. A gap has no name and belongs to all objects
// of its kind.
func (t *Types) Has(e *journal.Entry) bool {
	return t.named == nil || e.Name == "" || e.Owner != nil && t.owned[e.Kind.GroupResource()] ||
		t.named[object{e.Kind.GroupResource(), e.Name}]
}

// Named reports whether a state is of a named object.
func (t *Types) Named(s *journal.State) bool {
	return t.named == nil || t.named[object{s.Kind.GroupResource(), s.Name}]
}

// Resolve finds the kinds that words mean among those of a journal.
func Resolve(ctx context.Context, j Kinds, args []string) (t Types, err error) {
	kinds, err := j.Kinds(ctx)
	if err != nil || len(args) == 0 {
		return t, err
	}
	if !slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "/") }) {
		for _, typ := range strings.Split(args[0], ",") {
			if typ == "" {
				return t, usage.Errorf("%q has an empty type", args[0])
			}
			t.add(resolve(ctx, j, kinds, typ), typ)
		}
		t.Names = args[1:]
		t.follow()
		return t, nil
	}
	t.named = map[object]bool{}
	for _, a := range args {
		typ, name, _ := strings.Cut(a, "/")
		if typ == "" || name == "" || strings.ContainsAny(name, "/") {
			return t, usage.Errorf("%q is not TYPE/NAME; if one argument has this form, all must have it", a)
		}
		for _, gr := range t.add(resolve(ctx, j, kinds, typ), typ) {
			t.named[object{gr, name}] = true
		}
		t.Names = append(t.Names, name)
	}
	t.follow()
	return t, nil
}

// follow adds what the named objects own, as watch does.
func (t *Types) follow() {
	if len(t.Names) == 0 {
		return
	}
	t.Owned, t.owned = capture.Owns(), map[string]bool{}
	for next := t.Resources; len(next) > 0; next = next[1:] {
		for _, r := range t.Owned[next[0]] {
			t.owned[r] = true
			next = append(slices.Clip(next), r)
		}
	}
}

// add adds the kinds found for a word.
func (t *Types) add(found []string, word string) []string {
	if len(found) == 0 {
		t.Unknown = append(t.Unknown, word)
	}
	for _, gr := range found {
		if !slices.Contains(t.Resources, gr) {
			t.Resources = append(t.Resources, gr)
		}
	}
	return found
}

// Explain returns the error for a word that matches no kind of the journal.
func Explain(ctx context.Context, j Kinds, word string) error {
	kinds, err := j.Kinds(ctx)
	if err != nil {
		return err
	}
	var known []string
	for _, k := range kinds {
		known = append(known, k.Resource)
	}
	if near := spell.Nearest(word, known); near != "" {
		return fmt.Errorf("the journal has no %q; did you mean %q?", word, near)
	}
	return fmt.Errorf("the journal has no %q: nothing of that kind was recorded", word)
}

// resolve returns the kinds that a word means, of every group unless it names one. The journal may hold more kinds than
// the server has now, so none is preferred.
func resolve(ctx context.Context, j Kinds, kinds []journal.Kind, word string) (found []string) {
	word = strings.ToLower(word)
	name, group, qualified := strings.Cut(word, ".")
	for _, k := range kinds {
		is := name == k.Resource || name == strings.ToLower(k.Kind) || slices.Contains(j.ShortNames(ctx, k), name)
		of := !qualified || group == k.Group || group == strings.TrimSuffix(k.Version+"."+k.Group, ".")
		if gr := k.GroupResource(); is && of && !slices.Contains(found, gr) {
			found = append(found, gr)
		}
	}
	return found
}
