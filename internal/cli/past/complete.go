package past

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
)

// maxCompletions is how many words a shell is offered at most.
const maxCompletions = 200

// CompleteObjects has a command's arguments complete to the types and names of objects in the journal: TYPE NAME… and
// TYPE/NAME…
func (f *Flags) CompleteObjects(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		j, err := f.Open(cmd.Context())
		if err != nil { // there is nothing to offer, and no place to say why
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer j.Close()
		namespace := ""
		n, _ := cmd.Flags().GetStringArray("namespace")
		if n = slices.Compact(n); len(n) == 1 && !strings.ContainsAny(n[0], ",*?[") { // cobra parses the flags twice
			namespace = n[0]
		}
		words, err := j.objects(cmd.Context(), namespace, args, word)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// objects returns the words that a word about objects can become.
func (j *Journal) objects(ctx context.Context, namespace string, args []string, word string) ([]string, error) {
	typ, name, qualified := strings.Cut(word, "/")
	prefix := typ + "/"
	switch {
	case qualified:
	case len(args) > 0 && !strings.Contains(args[0], "/"):
		typ, name, prefix = args[0], word, ""
	default:
		return j.types(ctx, word)
	}
	t, err := selection.Resolve(ctx, j, []string{typ})
	if err != nil || len(t.Resources) == 0 {
		return nil, err
	}
	names, err := j.Names(ctx, t.Resources, namespace, name, maxCompletions)
	for i := range names {
		names[i] = prefix + names[i]
	}
	return names, err
}

// types returns the recorded kinds that begin with a word.
func (j *Journal) types(ctx context.Context, word string) (words []string, err error) {
	kinds, err := j.Kinds(ctx)
	for _, k := range kinds {
		if strings.HasPrefix(k.Resource, word) {
			words = append(words, k.Resource)
		}
	}
	slices.Sort(words)
	return slices.Compact(words), err
}

// CompleteChanges has a command's argument complete to the ids of the newest changes in the journal.
func (f *Flags) CompleteChanges(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		j, err := f.Open(cmd.Context())
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer j.Close()
		var ids []cobra.Completion
		for e, err := range j.Rows(cmd.Context(), journal.Query{Limit: maxCompletions}) {
			if err != nil {
				break
			}
			if strings.HasPrefix(e.ID, word) {
				ids = append(ids, cobra.CompletionWithDesc(e.ID[:8], string(e.Op)+" "+e.Kind.Resource+"/"+e.Name))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
