package selection

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/internal/meta"
	"github.com/tattler-dev/tattler/internal/spell"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Word is a TYPE as a user writes it, with the names of its objects; without names it means all of them.
type Word struct {
	Type  string
	Names []string
}

// Words parses kubectl's forms: TYPE[,TYPE…] [NAME…] or TYPE/NAME….
func Words(args []string) (words []Word, err error) {
	if len(args) == 0 {
		return nil, nil
	}
	if !slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "/") }) {
		for _, typ := range strings.Split(args[0], ",") {
			if typ == "" {
				return nil, usage.Errorf("%q has an empty type", args[0])
			}
			words = append(words, Word{typ, args[1:]})
		}
		return words, nil
	}
	for _, a := range args {
		typ, name, _ := strings.Cut(a, "/")
		if typ == "" || name == "" || strings.Contains(name, "/") {
			return nil, usage.Errorf("%q is not TYPE/NAME; if one argument has this form, all must have it", a)
		}
		words = append(words, Word{typ, []string{name}})
	}
	return words, nil
}

// Kinds are the kinds of a journal: *history.Builder.
type Kinds interface {
	Kinds(ctx context.Context) ([]meta.Kind, error)
	ShortNames(ctx context.Context, k meta.Kind) []string
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

	objects []string // as Query.Names
}

// Resolve finds the kinds that words mean among those of a journal.
func Resolve(ctx context.Context, j Kinds, args []string) (t Types, err error) {
	words, err := Words(args)
	if err != nil {
		return t, err
	}
	kinds, err := j.Kinds(ctx) // it fails as reading the journal would
	if err != nil || len(words) == 0 {
		return t, err
	}
	qualified := strings.Contains(args[0], "/") // as all are
	for _, w := range words {
		found := resolve(ctx, j, kinds, w.Type)
		t.Resources = add(t.Resources, found...)
		if len(found) == 0 {
			t.Unknown = append(t.Unknown, w.Type)
			found = []string{w.Type}
		}
		if !qualified {
			t.Names, t.objects = w.Names, w.Names
			continue
		}
		t.Names = append(t.Names, w.Names...)
		for _, resource := range found {
			t.objects = add(t.objects, resource+"/"+w.Names[0])
		}
	}
	return t, nil
}

// add appends the texts that a list does not have.
func add(to []string, texts ...string) []string {
	for _, text := range texts {
		if !slices.Contains(to, text) {
			to = append(to, text)
		}
	}
	return to
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
func resolve(ctx context.Context, j Kinds, kinds []meta.Kind, word string) (found []string) {
	word = strings.ToLower(word)
	name, group, qualified := strings.Cut(word, ".")
	for _, k := range kinds {
		is := name == k.Resource || name == strings.ToLower(k.Kind) || slices.Contains(j.ShortNames(ctx, k), name)
		of := !qualified || group == k.Group || group == strings.TrimSuffix(k.Version+"."+k.Group, ".")
		if is && of {
			found = add(found, k.GroupResource())
		}
	}
	return found
}
