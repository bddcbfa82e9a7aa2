package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/web/share"
)

// Target is a resource in a namespace. Namespace is empty for cluster-scoped resources, and
// Cluster for the cluster that authenticates viewers.
type Target = access.Target

var _ access.Limited = (*Viewer)(nil)

// Action is something other than seeing objects. It is a non-resource URL of RBAC, whose verb is a method in lower
// case. The URLs are names for roles; no server serves them.
type Action struct{ Verb, URL string }

// The actions. Roles that grant them are in docs/security.md.
var (
	// SeeStatus is seeing streams, sinks and the journal's size.
	SeeStatus = Action{"get", "/tattler/status"}
	// ManageSinks is giving orders about sinks, all that tattler sinks can give.
	ManageSinks = Action{"post", "/tattler/sinks"}
)

const (
	// keepAllowed is how long an allowed access is not reviewed again.
	keepAllowed = 10 * time.Second
	// keepDenied is how long a denied access is not reviewed again.
	keepDenied = 5 * time.Second
	// maxDecisions is how many of both are remembered.
	maxDecisions = 32768
	// maxAccessReviews is how many are made at once, for all viewers.
	maxAccessReviews = 16
	// maxShare is how many of these one viewer has.
	maxShare = 8
)

// errNoViewer means that a request did not pass Auth.Wrap.
var errNoViewer = errors.New("the request has no viewer")

// decision is the key of a remembered review.
type decision struct {
	viewer string
	target Target
	action Action
}

// rights makes and remembers access reviews.
type rights struct {
	reviewer Reviewer
	others   map[string]*other // by Target.Cluster
	log      *slog.Logger
	asking   *share.Pool
	failed   complaint
	decided  memo[decision, bool]
	created  memo[age, time.Time]
}

// age is the key of a remembered time. Viewers do not share it: one who may see a namespace that was created anew must not get
// the time of the earlier one.
type age struct {
	viewer    string
	namespace access.Namespace
}

// May returns for each target whether the viewer may `get` it. A resource that the viewer may get in the whole
// cluster needs one review; any other, one more for each of its namespaces. So ask for all targets of an answer
// in one call. The result has an element for each target, or is nil with an error: then nothing may be shown. The
// error is a *TooManyReviews, the context's, or says that a review failed.
func (v *Viewer) May(ctx context.Context, targets []Target) ([]bool, error) {
	out := make([]bool, len(targets))
	if v == nil || !v.all && v.rights == nil {
		return nil, errNoViewer
	}
	if v.all {
		for i := range out {
			out[i] = true
		}
		return out, nil
	}
	var wide, narrow []decision
	for _, t := range targets {
		t.Namespace = ""
		wide = append(wide, decision{viewer: v.key, target: t})
	}
	allowed := map[decision]bool{}
	if err := v.ask(ctx, wide, allowed); err != nil {
		return nil, err
	}
	for i, t := range targets {
		if !allowed[wide[i]] && t.Namespace != "" {
			narrow = append(narrow, decision{viewer: v.key, target: t})
		}
	}
	if err := v.ask(ctx, narrow, allowed); err != nil {
		return nil, err
	}
	for i, t := range targets {
		out[i] = allowed[wide[i]] || allowed[decision{viewer: v.key, target: t}]
	}
	return out, nil
}

// MayDo reports whether the viewer may do something. With an error, the viewer may not.
func (v *Viewer) MayDo(ctx context.Context, action Action) (bool, error) {
	switch {
	case v == nil || !v.all && v.rights == nil:
		return false, errNoViewer
	case v.all:
		return true, nil
	}
	d, allowed := decision{viewer: v.key, action: action}, map[decision]bool{}
	if err := v.ask(ctx, []decision{d}, allowed); err != nil {
		return false, err
	}
	return allowed[d], nil
}

// Created returns for each namespace when it was created, as access.Access. It counts as a review. A namespace that the daemon
// may not get counts as unknown.
func (v *Viewer) Created(ctx context.Context, namespaces []access.Namespace) ([]time.Time, error) {
	switch {
	case v == nil || !v.all && v.rights == nil:
		return nil, errNoViewer
	case v.all:
		return access.Everything{}.Created(ctx, namespaces)
	}
	var wanted []age
	for _, ns := range namespaces {
		wanted = append(wanted, age{v.key, ns})
	}
	known := map[age]time.Time{}
	err := askAll(ctx, v, wanted, known, v.rights.created.known, func(ctx context.Context, a age) (time.Time, error) { return v.rights.creation(ctx, a) })
	if err != nil {
		return nil, err
	}
	out := make([]time.Time, len(namespaces))
	for i := range wanted {
		out[i] = known[wanted[i]]
	}
	return out, nil
}

// ask makes the reviews that are not remembered, and sets allowed for each decision. Decisions may repeat.
func (v *Viewer) ask(ctx context.Context, wanted []decision, allowed map[decision]bool) error {
	return askAll(ctx, v, wanted, allowed, v.rights.decided.known, func(ctx context.Context, d decision) (bool, error) { return v.rights.review(ctx, v, d) })
}

// askAll sets the answer to each question, several at once. Questions may repeat; those that are not remembered cost a review.
func askAll[Q comparable, A any](ctx context.Context, v *Viewer, wanted []Q, answers map[Q]A, remembered func(Q) bool, ask func(context.Context, Q) (A, error)) error {
	var distinct []Q
	var none A
	unknown := 0
	for _, q := range wanted {
		if _, seen := answers[q]; seen {
			continue
		}
		answers[q] = none
		distinct = append(distinct, q)
		if !remembered(q) {
			unknown++
		}
	}
	if err := v.spend(unknown); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan Q, len(distinct))
	for _, q := range distinct {
		next <- q
	}
	close(next)
	var (
		mu      sync.Mutex
		workers sync.WaitGroup
	)
	for range min(maxShare, max(unknown, 1), len(distinct)) {
		workers.Go(func() {
			for q := range next {
				answer, err := ask(ctx, q)
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				answers[q] = answer
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

const cannotGet = "cannot get namespaces: viewers with rights in single namespaces see nothing"

// creation returns when a namespace was created; the zero time if it does not exist, or if that is not known.
func (r *rights) creation(ctx context.Context, a age) (time.Time, error) {
	return r.created.do(ctx, a, func() (time.Time, time.Duration, error) {
		if a.namespace.Cluster != "" {
			return r.creationElsewhere(ctx, a.viewer, a.namespace)
		}
		ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
		defer cancel()
		if err := r.asking.Enter(ctx, a.viewer); err != nil {
			return time.Time{}, 0, fmt.Errorf("get namespace: %w", err)
		}
		defer r.asking.Leave(a.viewer)
		at, err := r.reviewer.NamespaceCreated(ctx, a.namespace.Name)
		switch {
		case apierrors.IsForbidden(err):
			r.failed.log(r.log, cannotGet, err)
			return time.Time{}, keepDenied, nil
		case err != nil:
			if !errors.Is(err, context.Canceled) {
				r.failed.log(r.log, cannotGet, err)
			}
			return time.Time{}, 0, fmt.Errorf("get namespace: %w", err)
		case at.IsZero():
			return at, keepDenied, nil
		}
		return at, keepAllowed, nil
	})
}

func (r *rights) review(ctx context.Context, v *Viewer, d decision) (bool, error) {
	return r.decided.do(ctx, d, func() (bool, time.Duration, error) {
		if d.target.Cluster != "" {
			return r.elsewhere(ctx, v, d)
		}
		ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
		defer cancel()
		if err := r.asking.Enter(ctx, d.viewer); err != nil {
			return false, 0, fmt.Errorf("review access: %w", err)
		}
		defer r.asking.Leave(d.viewer)
		status, err := r.reviewer.ReviewAccess(ctx, d.spec(v))
		switch {
		case err != nil:
			if !errors.Is(err, context.Canceled) {
				r.failed.log(r.log, "cannot review access: viewers see nothing", err)
			}
			return false, 0, fmt.Errorf("review access: %w", err)
		case status.Allowed && !status.Denied:
			return true, keepAllowed, nil
		}
		return false, keepDenied, nil
	})
}

func (d decision) spec(v *Viewer) authorization.SubjectAccessReviewSpec {
	s := authorization.SubjectAccessReviewSpec{User: v.User, UID: v.UID, Groups: v.Groups}
	for k, values := range v.Extra {
		if s.Extra == nil {
			s.Extra = map[string]authorization.ExtraValue{}
		}
		s.Extra[k] = values
	}
	if d.action != (Action{}) {
		s.NonResourceAttributes = &authorization.NonResourceAttributes{Verb: d.action.Verb, Path: d.action.URL}
		return s
	}
	s.ResourceAttributes = &authorization.ResourceAttributes{
		Verb: "get", Group: d.target.Group, Resource: d.target.Resource, Namespace: d.target.Namespace,
	}
	return s
}
