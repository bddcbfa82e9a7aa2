package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"

	"github.com/tattler-dev/tattler/informer"
)

// replica is a map maintained by Informer.Mirror.
type replica[T informer.Object] struct {
	name  string
	ended chan struct{}

	mu       sync.Mutex
	objects  map[informer.Key]T
	versions map[informer.Stream]string
	resets   int
	problems []error
	err      error // the error of Mirror
}

func mirrored[T informer.Object](ctx context.Context, i *informer.Informer[T], name string) *replica[T] {
	r := &replica[T]{name: name, versions: map[informer.Stream]string{}, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		err := i.Mirror(ctx, name, r)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err = err
	}()
	return r
}

// Reset implements [informer.Replica].
func (r *replica[T]) Reset(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resets++
	r.objects = map[informer.Key]T{}
	return nil
}

// Put implements [informer.Replica].
func (r *replica[T]) Put(_ context.Context, k informer.Key, obj T) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if keyOf(obj) != k {
		r.problems = append(r.problems, fmt.Errorf("put %v as %v", keyOf(obj), k))
	}
	r.objects[k] = obj
	return nil
}

// Delete implements [informer.Replica].
func (r *replica[T]) Delete(_ context.Context, k informer.Key) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.objects[k]; !ok {
		r.problems = append(r.problems, fmt.Errorf("delete %v, which does not exist", k))
	}
	delete(r.objects, k)
	return nil
}

// Version implements [informer.Replica].
func (r *replica[T]) Version(_ context.Context, s informer.Stream, rv string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if older(rv, r.versions[s]) || rv == "" {
		r.problems = append(r.problems, fmt.Errorf("version %q of %v, after %q", rv, s, r.versions[s]))
	}
	r.versions[s] = rv
	return nil
}

func (r *replica[T]) diff(want map[informer.Key]version) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return differ(versions(maps.Values(r.objects)), want)
}

func (r *replica[T]) differs(want map[informer.Key]T) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.objects) != len(want) {
		return fmt.Errorf("%d objects, want %d", len(r.objects), len(want))
	}
	for k, w := range want {
		if got, ok := r.objects[k]; !ok || !reflect.DeepEqual(got, w) {
			return fmt.Errorf("%v differs from the list's (there: %v)", k, ok)
		}
	}
	return nil
}

func (r *replica[T]) verify() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := errors.Join(r.problems...)
	if r.resets != 1 {
		err = errors.Join(err, fmt.Errorf("reset %d times, want once", r.resets))
	}
	if len(r.versions) == 0 {
		err = errors.Join(err, errors.New("no version was passed"))
	}
	if r.err != nil {
		err = errors.Join(err, fmt.Errorf("it ended: %w", r.err))
	}
	return wrap(r.name, err)
}
