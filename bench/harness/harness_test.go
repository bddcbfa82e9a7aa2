package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be the child, too.
func TestMain(m *testing.M) {
	Main([]Job{
		{Name: "echo", Run: func(_ context.Context, in Input) (Sample, error) {
			return Sample{"objects": float64(in.Server.Objects), "limit B": float64(in.MemoryLimit)}, nil
		}},
		{Name: "fail", Run: func(context.Context, Input) (Sample, error) {
			fmt.Fprintln(os.Stderr, "what happened before")
			return nil, errors.New("no luck")
		}},
		{Name: "patient", Run: func(ctx context.Context, _ Input) (Sample, error) {
			return nil, Wait(ctx, func() bool { return false })
		}},
		{Name: "deaf", Run: func(context.Context, Input) (Sample, error) { select {} }},
		{Name: "panic", Run: func(context.Context, Input) (Sample, error) { panic("a bug") }},
		{Name: "allocate", Run: allocate},
	}, []Service{
		{Name: "service", Run: func(ctx context.Context, in Input, ready func(Server)) error {
			ready(Server{URL: fmt.Sprint(os.Getpid()), Objects: in.Server.Objects})
			<-ctx.Done()
			return nil
		}},
		{Name: "stillborn", Run: func(context.Context, Input, func(Server)) error { return errors.New("no port") }},
	})
	os.Exit(m.Run())
}

// allocate holds 32 MiB, and briefly 64.
func allocate(ctx context.Context, _ Input) (Sample, error) {
	m := NewMeter()
	held := make([]byte, 32<<20)
	for i := range held {
		held[i] = 1 // a page is not resident before it is written
	}
	peak := m.WatchHeap()
	more := make([]byte, 32<<20)
	if err := Wait(ctx, func() bool { return m.Heap() > 60<<20 }); err != nil {
		return nil, err
	}
	m.Set("peak heap B", peak.End())
	runtime.KeepAlive(more)
	m.Lap("work")
	m.Memory("held")
	runtime.KeepAlive(held)
	return m.Sample(), m.Time(ctx, "yield", func(int) error { runtime.Gosched(); return nil })
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Input
		want Sample
		err  []string // parts of the error
	}{
		{"a sample comes back, and the input arrives", Input{Job: "echo", Server: Server{Objects: 7}, MemoryLimit: 1 << 30, Seconds: 60},
			Sample{"objects": 7, "limit B": 1 << 30}, nil},
		{"a failure includes the output", Input{Job: "fail", Seconds: 60}, nil, []string{"run fail: no luck", "what happened before"}},
		{"an unknown job", Input{Job: "nothing", Seconds: 60}, nil, []string{`find job "nothing"`}},
		{"a job that is too slow says so itself", Input{Job: "patient", Seconds: 1}, nil, []string{"not done after 1s"}},
		{"a crash includes the stack", Input{Job: "panic", Seconds: 60}, nil, []string{"ended without an answer", "a bug"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Run(t.Context(), c.in)
			if (err != nil) != (c.err != nil) {
				t.Fatalf("the error is %v", err)
			}
			for _, s := range c.err {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("the error %q does not contain %q", err, s)
				}
			}
			for k, v := range c.want {
				if got[k] != v {
					t.Errorf("%s is %v, not %v", k, got[k], v)
				}
			}
		})
	}
}

// TestRunCancelled: a job that ignores its context dies with it.
func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := time.Now()
	if _, err := Run(ctx, Input{Job: "deaf", Seconds: 3600}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
}

func TestService(t *testing.T) {
	p, err := Start(t.Context(), Input{Job: "service", Server: Server{Objects: 3}, Seconds: 60})
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(p.Server.URL, &pid); err != nil || pid == os.Getpid() || p.Server.Objects != 3 {
		t.Errorf("the service reports %+v", p.Server)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the service still runs: %v", err)
	}
	if _, err := Start(t.Context(), Input{Job: "stillborn", Seconds: 60}); err == nil || !strings.Contains(err.Error(), "no port") {
		t.Errorf("a service that cannot start: %v", err)
	}
}

// TestMeter: the meter sees memory that is held, also if it is released before the end.
func TestMeter(t *testing.T) {
	s, err := Run(t.Context(), Input{Job: "allocate", Seconds: 60})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		lo, hi float64
	}{
		{"held heap B", 32 << 20, 34 << 20}, {"peak heap B", 64 << 20, 66 << 20}, {"held peak rss B", 32 << 20, 1 << 30},
		{"work s", 1e-6, 50}, {"work cpu s", 1e-6, 50}, {"yield ns", 1, 1e6}, {"yield allocs", 0, 1},
	} {
		if runtime.GOOS != "linux" && strings.Contains(c.name, "rss") {
			continue
		}
		if v := s[c.name]; v < c.lo || v > c.hi {
			t.Errorf("%s is %v, not between %v and %v", c.name, v, c.lo, c.hi)
		}
	}
}
