// Package access limits a journal to what a viewer may see.
//
// It is the one place that limits which objects and changes a viewer sees: the page and the API read the journal only
// through a Source. Package web checks the rights to the status and to the sinks.
//
// What it does not hide: how many changes the journal has (sequence numbers), since and until when it was recorded, when the
// daemon did not run, the names of the clusters, and what Kubernetes' discovery shows to every authenticated user: names of
// namespaced kinds, their short names and schemas.
package access

import (
	"context"
	"errors"
	"fmt"

	"github.com/tattler-dev/tattler/internal/journal"
)

// Target is what a right is about: a resource in a namespace. Namespace is empty for a cluster-scoped resource, and for
// all namespaces. Cluster is as in journal.Kind: it counts in that cluster only.
type Target struct{ Group, Resource, Namespace, Cluster string }

// Access is the rights of a viewer.
type Access interface {
	// May returns for each target whether the viewer may get it. With an error, nothing may be shown.
	May(ctx context.Context, targets []Target) ([]bool, error)
}

// Everything is the Access of a viewer who may see everything, such as the user who owns the journal's file.
type Everything struct{}

// May implements Access.
func (Everything) May(_ context.Context, targets []Target) ([]bool, error) {
	all := make([]bool, len(targets))
	for i := range all {
		all[i] = true
	}
	return all, nil
}

type accessKey struct{}

// With returns a context in which a Source shows what a viewer may see.
func With(ctx context.Context, a Access) context.Context {
	return context.WithValue(ctx, accessKey{}, a)
}

// ErrNobody means that a context has no Access: nothing may be shown. It is an error of the program.
var ErrNobody = errors.New("the request has no viewer")

// CheckError says that the rights could not be checked, and so nothing is shown.
type CheckError struct{ Err error }

func (e *CheckError) Error() string { return fmt.Sprintf("check access: %v", e.Err) }
func (e *CheckError) Unwrap() error { return e.Err }

// May returns for each target whether the viewer of a context may get it. The error is a *CheckError.
func May(ctx context.Context, targets []Target) ([]bool, error) {
	a, ok := ctx.Value(accessKey{}).(Access)
	if !ok || a == nil {
		return nil, &CheckError{ErrNobody}
	}
	allowed, err := a.May(ctx, targets)
	switch {
	case err != nil:
		return nil, &CheckError{err}
	case len(allowed) != len(targets):
		return nil, &CheckError{fmt.Errorf("%d answers for %d targets", len(allowed), len(targets))}
	}
	return allowed, nil
}

// TargetOf returns the right that objects of a kind in a namespace need.
func TargetOf(k journal.Kind, namespace string) Target {
	if !k.Namespaced {
		namespace = ""
	}
	return Target{k.Group, k.Resource, namespace, k.Cluster}
}

// checker remembers decisions while one sequence is read.
type checker struct {
	ctx     context.Context
	known   map[Target]bool
	unknown []Target
}

func newChecker(ctx context.Context) *checker {
	return &checker{ctx: ctx, known: map[Target]bool{}}
}

// want notes that a decision is needed.
func (c *checker) want(targets ...Target) {
	for _, t := range targets {
		if _, ok := c.known[t]; !ok {
			c.known[t] = false
			c.unknown = append(c.unknown, t)
		}
	}
}

// decide makes the decisions that are needed. Without an error, known has them.
func (c *checker) decide() error {
	if len(c.unknown) == 0 {
		return nil
	}
	allowed, err := May(c.ctx, c.unknown)
	if err != nil {
		return err
	}
	for i, t := range c.unknown {
		c.known[t] = allowed[i]
	}
	c.unknown = c.unknown[:0]
	return nil
}
