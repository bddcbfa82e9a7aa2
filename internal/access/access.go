// Package access limits a journal to what a viewer may see.
//
// It is the one place that limits which objects and changes a viewer sees: the page and the API read the journal only
// through a Source. Package web checks the rights to the status and to the sinks.
//
// A Source decides first, about the kinds and namespaces that a query concerns, and then lets the journal read only what is
// visible. Which rights it checks does not depend on what matches. So neither the content of an answer nor the time that it
// takes tells what hidden objects are called, who changes them, or whether they match.
//
// An object that is older than its namespace belongs to an earlier namespace of the same name. Only viewers who may see its
// kind in the whole cluster see it.
//
// What it does not hide: how many changes the journal has (sequence numbers, and the time that it takes to read all), since and
// until when it was recorded, when the daemon did not run, the names of the clusters, and what Kubernetes' discovery shows to
// every authenticated user: names of namespaced kinds, their short names and schemas.
package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
)

// Target is what a right is about: a resource in a namespace. Namespace is empty for a cluster-scoped resource, and for
// all namespaces. Cluster is as in journal.Kind: it counts in that cluster only.
type Target struct{ Group, Resource, Namespace, Cluster string }

// Access is the rights of a viewer.
type Access interface {
	// May returns for each target whether the viewer may get it. With an error, nothing may be shown.
	May(ctx context.Context, targets []Target) ([]bool, error)
	// Created returns for each namespace when it was created; the zero time if it does not exist, or if that is not known. With
	// an error, nothing may be shown.
	Created(ctx context.Context, namespaces []Namespace) ([]time.Time, error)
}

// Namespace is a namespace of a cluster, named as in Target.
type Namespace struct{ Cluster, Name string }

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

// Created implements Access: nothing is too old.
func (Everything) Created(_ context.Context, namespaces []Namespace) ([]time.Time, error) {
	all := make([]time.Time, len(namespaces))
	for i := range all {
		all[i] = time.Unix(0, 0)
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
	return ask(ctx, targets, Access.May)
}

// created returns when each namespace was created, as the viewer of a context may know. The error is a *CheckError.
func created(ctx context.Context, namespaces []Namespace) ([]time.Time, error) {
	return ask(ctx, namespaces, Access.Created)
}

// ask asks the Access of a context, which has one answer for each question.
func ask[Q, A any](ctx context.Context, questions []Q, method func(Access, context.Context, []Q) ([]A, error)) ([]A, error) {
	a, ok := ctx.Value(accessKey{}).(Access)
	if !ok || a == nil {
		return nil, &CheckError{ErrNobody}
	}
	answers, err := method(a, ctx, questions)
	switch {
	case err != nil:
		return nil, &CheckError{err}
	case len(answers) != len(questions):
		return nil, &CheckError{fmt.Errorf("%d answers to %d questions", len(answers), len(questions))}
	}
	return answers, nil
}

// TargetOf returns the right that objects of a kind in a namespace need.
func TargetOf(k journal.Kind, namespace string) Target {
	if !k.Namespaced {
		namespace = ""
	}
	return Target{k.Group, k.Resource, namespace, k.Cluster}
}

// checker remembers decisions for one query.
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
