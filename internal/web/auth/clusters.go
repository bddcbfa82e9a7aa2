package auth

import (
	"context"
	"sync"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/internal/access"
)

// A viewer is a user of the cluster that authenticates. In any other cluster a user of that name can be someone else, so a
// Target there is denied unless Options.Clusters has a Reviewer for it. Such a review may fail without hiding what other
// clusters have: its Target then counts as denied, and the cluster is not asked again for a while.

const (
	// otherTimeout bounds a review of another cluster: a page waits for it.
	otherTimeout = 2 * time.Second
	// otherPause is how long a cluster whose review failed is not asked.
	otherPause = 30 * time.Second
)

// other is another cluster's reviewer.
type other struct {
	Reviewer
	mu    sync.Mutex
	until time.Time // of the pause
}

func (o *other) paused() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Now().Before(o.until)
}

func (o *other) pause() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until = time.Now().Add(otherPause)
}

// elsewhere decides about a target in another cluster. A failed review is a refusal that is not remembered.
func (r *rights) elsewhere(ctx context.Context, v *Viewer, d decision) (allowed bool, keep time.Duration, err error) {
	ok, err := r.askOther(ctx, d.viewer, d.target.Cluster, func(ctx context.Context, o Reviewer) error {
		status, err := o.ReviewAccess(ctx, d.spec(v))
		allowed = err == nil && status.Allowed && !status.Denied
		return err
	})
	return allowed, keepFor(ok, allowed), err
}

// creationElsewhere is creation in another cluster.
func (r *rights) creationElsewhere(ctx context.Context, viewer string, ns access.Namespace) (at time.Time, keep time.Duration, err error) {
	ok, err := r.askOther(ctx, viewer, ns.Cluster, func(ctx context.Context, o Reviewer) (err error) {
		if at, err = o.NamespaceCreated(ctx, ns.Name); apierrors.IsForbidden(err) { // it answers about objects nevertheless
			r.failed.log(r.log, cannotGet+" of the cluster "+ns.Cluster, err)
			return nil
		}
		return err
	})
	return at, keepFor(ok, !at.IsZero()), err
}

// keepFor is how long an answer is remembered; ok says that there was one.
func keepFor(ok, granted bool) time.Duration {
	switch {
	case !ok:
		return 0
	case granted:
		return keepAllowed
	}
	return keepDenied
}

// askOther asks another cluster, and reports whether it answered. An error means that the viewer has left.
func (r *rights) askOther(ctx context.Context, viewer, cluster string, ask func(context.Context, Reviewer) error) (ok bool, _ error) {
	o := r.others[cluster]
	if o == nil || o.paused() {
		return false, nil
	}
	limited, cancel := context.WithTimeout(ctx, otherTimeout)
	defer cancel()
	if r.asking.Enter(limited, viewer) != nil {
		return false, nil // it counts as denied
	}
	defer r.asking.Leave(viewer)
	err := ask(limited, o)
	switch {
	case ctx.Err() != nil: // that says nothing about the cluster
		return false, context.Cause(ctx)
	case err != nil:
		o.pause()
		r.failed.log(r.log, "cannot review access in the cluster "+cluster+": viewers see nothing of it", err)
		return false, nil
	}
	return true, nil
}

// Lazy returns a Reviewer that is made when it is first needed, and again after a failure.
func Lazy(open func() (Reviewer, error)) Reviewer { return &lazy{open: open} }

type lazy struct {
	open func() (Reviewer, error)

	mu   sync.Mutex
	made Reviewer
}

func (l *lazy) get() (Reviewer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made != nil {
		return l.made, nil
	}
	r, err := l.open()
	if err == nil {
		l.made = r
	}
	return r, err
}

// ReviewToken implements Reviewer.
func (l *lazy) ReviewToken(ctx context.Context, token authentication.TokenReviewSpec) (authentication.TokenReviewStatus, error) {
	r, err := l.get()
	if err != nil {
		return authentication.TokenReviewStatus{}, err
	}
	return r.ReviewToken(ctx, token)
}

// ReviewAccess implements Reviewer.
func (l *lazy) ReviewAccess(ctx context.Context, access authorization.SubjectAccessReviewSpec) (authorization.SubjectAccessReviewStatus, error) {
	r, err := l.get()
	if err != nil {
		return authorization.SubjectAccessReviewStatus{}, err
	}
	return r.ReviewAccess(ctx, access)
}

// NamespaceCreated implements Reviewer.
func (l *lazy) NamespaceCreated(ctx context.Context, name string) (time.Time, error) {
	r, err := l.get()
	if err != nil {
		return time.Time{}, err
	}
	return r.NamespaceCreated(ctx, name)
}
