package guide

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

// sample is one side of a section.
type sample func(ctx context.Context, cfg *rest.Config, out io.Writer) error

// section is a section of the page: two samples, and the events while each runs. The names of its regions and of its output
// begin with its name and end with -clientgo and -tattler.
type section struct {
	name              string
	clientGo, tattler sample
	// user is who the samples are; empty: the administrator.
	user string
	// before creates the objects that exist when the samples start.
	before func(*world)
	story  []step
	// endless says that the samples go on to print while nothing happens. What they print behind the last step is left
	// out.
	endless bool
}

// step waits until a sample has printed a text, or one of several, separated by |, after the text of the previous step; then
// it calls do. The last step ends the sample.
type step struct {
	after string
	do    func(*world)
}

// TestGuide runs every sample, and compares the page with their output.
func TestGuide(t *testing.T) {
	printed := map[string]string{}
	for _, s := range sections {
		for side, run := range map[string]sample{"clientgo": s.clientGo, "tattler": s.tattler} {
			name := s.name + "-" + side
			t.Run(name, func(t *testing.T) { printed[name] = s.run(t, run) })
		}
	}
	for name, run := range map[string]func(*testing.T, io.Writer){"tests-clientgo": testsClientGo, "tests-tattler": testsTattler} {
		t.Run(name, func(t *testing.T) {
			out := &output{}
			run(t, out)
			printed[name] = out.String()
		})
	}
	if !t.Failed() {
		comparePage(t, printed)
	}
}

// run runs a sample through its steps, and returns its output.
func (s *section) run(t *testing.T, run sample) string {
	w := newWorld(t)
	if s.before != nil {
		s.before(w)
	}
	cfg := config(t, w.lines)
	if s.user != "" {
		cfg.Impersonate.UserName = s.user
	}
	out := &output{}
	var stop func()
	start := func() {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, cfg, out) }()
		stop = func() {
			cancel()
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(patience):
				t.Errorf("it did not end")
			}
			stop = func() {}
		}
	}
	start()
	defer w.lines.cut()
	defer func() { stop() }()
	w.again = func(between func()) {
		stop()
		between()
		start()
	}
	from := 0
	for _, step := range s.story {
		from = out.wait(t, step.after, from)
		if step.do != nil {
			step.do(w)
		}
	}
	stop()
	all := out.String()
	if line := strings.Index(all[from:], "\n"); s.endless && line >= 0 {
		all = all[:from+line+1]
	}
	return all
}

// output collects a sample's output.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// wait waits for one of several texts behind a place, and returns the place behind it.
func (o *output) wait(t *testing.T, texts string, from int) (end int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := clustertest.Poll(ctx, 10*time.Millisecond, func() error {
		all := o.String()
		for text := range strings.SplitSeq(texts, "|") {
			if i := strings.Index(all[from:], text); i >= 0 {
				end = from + i + len(text)
				return nil
			}
		}
		return fmt.Errorf("it did not print %q behind byte %d of\n%s", texts, from, all)
	})
	if err != nil {
		t.Fatal(err)
	}
	return end
}
