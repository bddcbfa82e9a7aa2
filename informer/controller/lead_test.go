package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tattler-dev/tattler/informer/controller"
)

// fakeLease is a lease in memory.
type fakeLease struct {
	mu     sync.Mutex
	record *resourcelock.LeaderElectionRecord
	at     time.Time // when it was written
	down   bool
}

// fakeLock is a process's access to a lease.
type fakeLock struct {
	*fakeLease
	identity string
	seen     resourcelock.LeaderElectionRecord
}

func (l *fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.down:
		return nil, nil, errors.New("the server is away")
	case l.record == nil:
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "test")
	}
	l.seen = *l.record
	return &l.seen, fmt.Append(nil, l.seen), nil
}

func (l *fakeLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func (l *fakeLock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return errors.New("the server is away")
	}
	if l.record != nil && *l.record != l.seen {
		return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "test", errors.New("concurrent write"))
	}
	l.record, l.seen, l.at = &r, r, time.Now()
	return nil
}

func (l *fakeLock) RecordEvent(string)             {}
func (l *fakeLock) Identity() string               { return l.identity }
func (l *fakeLock) Describe() string               { return "test/" + l.identity }
func (l *fakeLock) DeepCopyObject() runtime.Object { return nil }
func (l *fakeLease) set(down bool)                 { l.mu.Lock(); l.down = down; l.mu.Unlock() }

// TestFakeLeader: one of two processes reconciles; the other takes over when it ends, or when it cannot renew its lease,
// which ends it at once.
func TestFakeLeader(t *testing.T) {
	play(t, 1, func(r *rig) {
		lease := &fakeLease{}
		var mu sync.Mutex
		leader, running := "", 0
		start := func(name string) (end func() error) {
			o := controller.Options{Lock: &fakeLock{fakeLease: lease, identity: name}, Grace: time.Hour}
			_, end = r.run(o, func(ctx context.Context, _ controller.Key) (controller.Result, error) {
				mu.Lock()
				leader, running = name, running+1
				if running > 1 {
					r.Errorf("two reconcile, one of them %s", name)
				}
				mu.Unlock()
				select {
				case <-time.After(3 * time.Second):
				case <-ctx.Done():
				}
				mu.Lock()
				defer mu.Unlock()
				running--
				return controller.Result{RequeueAfter: time.Second}, nil
			}, controller.For(r.widgets))
			return end
		}
		is := func(want string) {
			r.Helper()
			mu.Lock()
			defer mu.Unlock()
			if leader != want {
				r.Errorf("%q leads, want %q", leader, want)
			}
		}
		endA := start("a")
		<-time.After(time.Second)
		endB := start("b")
		<-time.After(time.Minute)
		is("a")
		if err := endA(); err != nil {
			t.Error(err)
		}
		<-time.After(10 * time.Second) // less than the lease: it was released
		is("b")
		endC := start("c")
		lease.set(true)
		<-time.After(30 * time.Second)
		if err := endB(); err == nil || !strings.Contains(err.Error(), "leadership was lost") {
			t.Errorf("b ended with %v", err)
		}
		lease.set(false)
		<-time.After(30 * time.Second)
		is("c")
		if err := endC(); err != nil {
			t.Error(err)
		}
	})
}

// TestFakeFollower: a process that never leads ends without an error, and reconciles nothing.
func TestFakeFollower(t *testing.T) {
	play(t, 1, func(r *rig) {
		lease := &fakeLease{down: true}
		_, end := r.run(controller.Options{Lock: &fakeLock{fakeLease: lease, identity: "a"}}, func(context.Context, controller.Key) (controller.Result, error) {
			r.Error("it reconciles")
			return controller.Result{}, nil
		}, controller.For(r.widgets))
		<-time.After(time.Minute)
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestFakeLapse: a leader whose last renewal is older than Lease.Renew starts no call, although it learns only later that
// it lost the lease.
func TestFakeLapse(t *testing.T) {
	play(t, 1, func(r *rig) {
		lease := &fakeLease{}
		var last time.Time
		_, end := r.run(controller.Options{Lock: &fakeLock{fakeLease: lease, identity: "a"}}, func(context.Context, controller.Key) (controller.Result, error) {
			last = time.Now()
			return controller.Result{RequeueAfter: 50 * time.Millisecond}, nil
		}, controller.For(r.widgets))
		<-time.After(time.Minute)
		lease.set(true)
		<-time.After(30 * time.Second)
		if err := end(); err == nil || !strings.Contains(err.Error(), "leadership was lost") {
			t.Error(err)
		}
		if age := last.Sub(lease.at); age < 9*time.Second || age > 10*time.Second {
			t.Errorf("the last began %s after the last renewal", age)
		}
	})
}

// TestUnheeded: a Reconcile that ignores its context does not keep Run from returning, neither after Grace nor after a
// lost lease, and the lease is not released while it may write.
func TestUnheeded(t *testing.T) {
	for _, tc := range []struct {
		why  string
		lock bool
		down bool // the lease cannot be renewed
		stop bool // Run's context ends
		by   time.Duration
		want string
	}{
		{"the end, without a lock", false, false, true, 25 * time.Second, "controller test: Reconcile ignores the end of its context, and still runs for n/w000"},
		{"the end, with a lock", true, false, true, 25 * time.Second, "controller test: Reconcile ignores the end of its context, and still runs for n/w000"},
		{"a lost lease", true, true, false, 13 * time.Second, "controller test: leadership was lost: another process may reconcile now; Reconcile ignores"},
		{"a lease that is lost in the grace", true, true, true, 13 * time.Second, "controller test: leadership was lost: another process may reconcile now; Reconcile ignores"},
	} {
		play(t, 1, func(r *rig) {
			lease, going, goOn := &fakeLease{}, make(chan struct{}), make(chan struct{})
			var lost []controller.Key
			o := controller.Options{Hooks: controller.Hooks{Lost: func(running []controller.Key) { lost = running }}}
			if tc.lock {
				o.Lock = &fakeLock{fakeLease: lease, identity: "a"}
			}
			c := controller.New("test", func(context.Context, controller.Key) (controller.Result, error) {
				close(going)
				<-goOn
				return controller.Result{}, nil
			}, o, controller.For(r.widgets))
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- c.Run(ctx) }()
			<-going
			began := time.Now()
			lease.set(tc.down)
			if tc.stop {
				cancel()
			}
			select {
			case err := <-done:
				var unfinished *controller.UnfinishedError
				if err == nil || !strings.HasPrefix(err.Error(), tc.want) || !errors.As(err, &unfinished) || errors.Is(err, controller.ErrLost) != tc.down {
					t.Errorf("%s: Run: %v", tc.why, err)
				}
				if took := time.Since(began); took > tc.by {
					t.Errorf("%s: Run returned after %s", tc.why, took)
				}
			case <-time.After(time.Hour):
				t.Errorf("%s: Run does not return", tc.why)
			}
			if called := len(lost) == 1 && lost[0] == key("w000"); called != tc.down {
				t.Errorf("%s: Hooks.Lost got %v", tc.why, lost)
			}
			if tc.lock && lease.record.HolderIdentity != "a" {
				t.Errorf("%s: the lease was released", tc.why)
			}
			close(goOn)
		})
	}
}

// TestBadLease: invalid times are an error at once, even while the API server is unreachable.
func TestBadLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, cluster, i := program(t)
		server.SetDown(true)
		o := controller.Options{Lock: &fakeLock{fakeLease: &fakeLease{}, identity: "a"}, Lease: controller.Lease{Duration: time.Second}}
		began := time.Now()
		err := controller.Run(t.Context(), cluster, controller.New("test", nothing, o, controller.For(i)))
		if err == nil || !strings.Contains(err.Error(), "controller test: set up leader election: leaseDuration must be greater than renewDeadline") || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
