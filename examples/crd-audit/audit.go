package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/kinds"
)

// synced logs a line when the last of the kinds that are served at the start has been listed, or cannot be.
func (a *audit) synced(ctx context.Context, view *informer.Informer[*unstructured.Unstructured]) {
	if err := view.Wait(ctx); err == nil {
		a.readable.Add(1)
	}
	if a.unsynced.Add(-1) == 0 && ctx.Err() == nil {
		slog.Info("synced, and auditing every change", "kinds", a.readable.Load(), "policies", len(a.policies))
	}
}

// kind checks the objects of a kind until ctx ends or the kind is gone.
func (a *audit) kind(ctx context.Context, k kinds.Kind, objects *informer.Subscription[*unstructured.Unstructured]) {
	defer objects.Stop()
	found := map[string][]finding{} // by UID, of the objects that violate something
	for change, err := range objects.All(ctx) {
		if err != nil { // the context has ended, or the kind is gone
			return
		}
		if change.Op == informer.Gapped {
			slog.Warn("changes were missed, and are not checked", "kind", k, "reason", change.Gap.Reason, "since", change.Gap.Since)
			continue
		}
		was, err1 := change.Old()
		is, err2 := change.New()
		if err := errors.Join(err1, err2); err != nil {
			slog.Error("an object cannot be read", "kind", k, "key", change.Key, "error", err)
			continue
		}
		uid := string(change.UID)
		before := found[uid]
		if change.Initial && a.reports != nil {
			before = a.reports.carried(is)
		}
		after := judge(ctx, a.policies, k.String(), event{change.Op.String(), content(was), content(is)}, before)
		for _, f := range after {
			if !slices.ContainsFunc(before, f.same) {
				fmt.Printf("%s %s %s: %s: %s\n", k, change.Key, change.Op, f.policy, f.text)
			}
		}
		if delete(found, uid); is != nil && len(after) > 0 {
			found[uid] = after
		}
		switch {
		case a.reports == nil:
		case is == nil:
			a.reports.set(was, nil)
		default:
			a.reports.set(is, after)
		}
	}
}
