package access

import (
	"context"
	"slices"
	"time"
)

// Map returns a context whose Access is passed other names of clusters: to returns that of Target.Cluster.
func Map(ctx context.Context, to func(cluster string) string) context.Context {
	a, ok := ctx.Value(accessKey{}).(Access)
	if !ok || a == nil {
		return ctx
	}
	return With(ctx, mapped{a, to})
}

type mapped struct {
	Access
	to func(string) string
}

// May implements Access.
func (m mapped) May(ctx context.Context, targets []Target) ([]bool, error) {
	targets = slices.Clone(targets)
	for i := range targets {
		targets[i].Cluster = m.to(targets[i].Cluster)
	}
	return m.Access.May(ctx, targets)
}

// Created implements Access.
func (m mapped) Created(ctx context.Context, namespaces []Namespace) ([]time.Time, error) {
	namespaces = slices.Clone(namespaces)
	for i := range namespaces {
		namespaces[i].Cluster = m.to(namespaces[i].Cluster)
	}
	return m.Access.Created(ctx, namespaces)
}

// Left implements Limited.
func (m mapped) Left() int { return leftOf(m.Access) }
