package informer

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var errNotRun = errors.New("nothing was listed: Cluster.Run was not called")

// SyncError says that a stream of a source cannot complete its initial list.
type SyncError struct {
	Stream Stream
	// Err is the cause: an apierrors.APIStatus if the server answered.
	Err error
}

func (e *SyncError) Error() string {
	where := e.Stream.Resource.GroupResource().String()
	if e.Stream.Namespace != "" {
		where += " in namespace " + e.Stream.Namespace
	}
	if e.Stream.Namespace != "" && apierrors.IsNotFound(e.Err) {
		return fmt.Sprintf("sync %s: %v; is the resource namespaced?", where, e.Err)
	}
	return fmt.Sprintf("sync %s: %v", where, e.Err)
}

func (e *SyncError) Unwrap() error { return e.Err }

// Wait returns nil once every stream is synced, or a *SyncError as soon as one cannot be: the server refuses the
// list (forbidden, unauthorized several times in a row, …) or does not serve the kind. While the server does not
// answer, or fails, Wait keeps waiting; when ctx ends, it returns the error of ctx joined with the last cause. If the
// source is closed, it returns ErrClosed.
func (s *Source) Wait(ctx context.Context) error {
	return s.wait(ctx, isSynced)
}

// Wait waits for the view's source: see Source.Wait.
func (i *Informer[T]) Wait(ctx context.Context) error { return i.source.Wait(ctx) }

// HasSynced reports whether every stream of the view's source has synced; once true, it stays true.
func (i *Informer[T]) HasSynced() bool {
	ready, _, _ := i.source.progress(isSynced)
	return ready
}

func isSynced(st Status) bool { return st.Synced }

// WaitForLoad returns nil once every stream has a state to read: from a checkpoint, or because it is synced. Its
// errors are those of Wait.
func (s *Source) WaitForLoad(ctx context.Context) error {
	return s.wait(ctx, func(st Status) bool { return st.Loaded })
}

func (s *Source) wait(ctx context.Context, done func(Status) bool) error {
	for {
		changed, closed := s.watchState()
		ready, final, cause := s.progress(done)
		switch {
		case closed:
			return ErrClosed
		case ready:
			return nil
		case final:
			return cause
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if !s.cluster.hasRun() {
				cause = errNotRun
			}
			return errors.Join(ctx.Err(), cause)
		}
	}
}

// progress reports whether every stream is done, and the cause if one is not. final means that waiting alone will not
// help.
func (s *Source) progress(done func(Status) bool) (ready, final bool, cause error) {
	ready = true
	for _, st := range s.streams {
		status, stuck := st.sync()
		if done(status) {
			continue
		}
		ready = false
		if status.Err == nil {
			continue
		}
		cause = &SyncError{Stream: status.Stream, Err: status.Err}
		if stuck {
			return false, true, cause
		}
	}
	return ready, false, cause
}

// watchState returns a channel that is closed at the next change of a stream's state.
func (s *Source) watchState() (changed <-chan struct{}, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed, s.closed
}

// notify wakes goroutines that wait for a change of state.
func (s *Source) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}
