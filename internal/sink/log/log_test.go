package log

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) {
	sinktest.Main(m, func(target string) (sink.Sink, error) {
		f, err := os.OpenFile(target, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		return New(f, "stdout", Options{Format: JSON})
	})
}

func TestSuite(t *testing.T) {
	for _, format := range []Format{Text, JSON} {
		t.Run(string(format), func(t *testing.T) {
			sinktest.Run(t, sinktest.Suite{
				Type: "*log.Sink", Name: "log",
				Cannot: []sinktest.Behaviour{sinktest.Busy, sinktest.Refuses}, // a stream cannot answer
				Start: func(t *testing.T) sinktest.Receiver {
					return &stream{path: filepath.Join(t.TempDir(), "out"), changed: make(chan struct{})}
				},
				Open: func(t *testing.T, r sinktest.Receiver) sink.Sink {
					s, err := New(r.(*stream), "stdout", Options{Format: format})
					if err != nil {
						t.Fatal(err)
					}
					return s
				},
			})
		})
	}
}

// stream is a file that misbehaves like a pipe or a terminal.
type stream struct {
	path string

	mu      sync.Mutex
	b       sinktest.Behaviour
	changed chan struct{} // closed at the next change of behaviour
}

func (s *stream) Target() string { return s.path }

func (s *stream) Behave(b sinktest.Behaviour, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b = b
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	behaviour, changed := s.b, s.changed
	s.mu.Unlock()
	switch behaviour {
	case sinktest.Down:
		return 0, io.ErrClosedPipe
	case sinktest.Hangs:
		<-changed
	case sinktest.Slow:
		<-time.After(20 * time.Millisecond)
	}
	f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(b)
	return n, errors.Join(err, f.Close())
}

func (s *stream) Received(t *testing.T) []string {
	t.Helper()
	f, err := os.Open(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var ids []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "changed "); ok {
			ids = append(ids, id)
			continue
		}
		var e struct{ ID string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.ID == "" {
			t.Fatalf("torn line %q: %v", lines.Text(), err)
		}
		ids = append(ids, e.ID)
	}
	return ids
}

// short takes so many bytes, then none until its budget is raised.
type short struct {
	bytes.Buffer
	room int
}

func (s *short) Write(b []byte) (int, error) {
	n := min(s.room, len(b))
	s.room -= n
	s.Buffer.Write(b[:n])
	if n < len(b) {
		return n, io.ErrClosedPipe
	}
	return n, nil
}

// TestPartialWrite checks that a fully written message is acknowledged, and that a partial one stands alone on its
// line and is written again.
func TestPartialWrite(t *testing.T) {
	ms := sinktest.Messages(0, 3)
	one := len(ms[0].Body) + 1
	for _, tc := range []struct {
		why   string
		room  int
		acked int
		lines []int // which message each line holds; -1: torn
	}{
		{"nothing", 0, 0, []int{0, 1, 2}},
		{"a part of the first", 10, 0, []int{-1, 0, 1, 2}},
		{"just the first", one, 1, []int{0, 1, 2}},
		{"two and a part", 2*one + 1, 2, []int{0, 1, -1, 2}},
		{"all but the last newline", 3*one - 1, 2, []int{0, 1, 2, 2}},
	} {
		w := &short{room: tc.room}
		s, err := New(w, "stdout", Options{Format: JSON})
		if err != nil {
			t.Fatal(err)
		}
		acked, err := s.Send(t.Context(), ms)
		if acked != tc.acked || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: acknowledged %d, %v; want %d", tc.why, acked, err, tc.acked)
		}
		w.room = 1 << 20
		if _, err := s.Send(t.Context(), ms[acked:]); err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
		var got []int
		for line := range strings.Lines(w.String()) {
			got = append(got, slices.IndexFunc(ms, func(m sink.Message) bool { return string(m.Body)+"\n" == line }))
		}
		if !slices.Equal(got, tc.lines) {
			t.Errorf("%s: lines %v, want %v", tc.why, got, tc.lines)
		}
	}
}

// TestTextFails checks that a change that cannot be rendered is a permanent error, and does not block earlier ones.
func TestTextFails(t *testing.T) {
	var w bytes.Buffer
	s, err := New(&w, "stdout", Options{})
	if err != nil {
		t.Fatal(err)
	}
	ms := sinktest.Messages(0, 3)
	ms[1].Text = func(w io.Writer) error {
		_, err := io.WriteString(w, "half a ")
		return errors.Join(err, errors.New("no such field"))
	}
	for _, want := range []int{1, 0} {
		acked, err := s.Send(t.Context(), ms)
		var permanent *sink.PermanentError
		if acked != want || !errors.As(err, &permanent) {
			t.Errorf("acknowledged %d, %v; want %d and a permanent error", acked, err, want)
		}
		ms = ms[acked:]
	}
	ms[1].Text = nil
	if _, err := s.Send(t.Context(), ms[1:]); err != nil {
		t.Error(err)
	}
	want := "changed " + sinktest.Event(0).ID + "\n2026-11-21T10:00:02Z updated /apis/apps/v1/namespaces/shop/deployments/web-2\n"
	if got := w.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// begun is a pipe that calls write when a write begins.
type begun struct {
	*io.PipeWriter
	write func()
}

func (b begun) Write(p []byte) (int, error) {
	b.write()
	return b.PipeWriter.Write(p)
}

// TestBlocked checks that a pipe without a reader does not block the caller, and keeps one write.
func TestBlocked(t *testing.T) {
	r, w := io.Pipe()
	ended, end := context.WithCancel(t.Context())
	s, err := New(begun{w, end}, "stdout", Options{Format: JSON})
	if err != nil {
		t.Fatal(err)
	}
	ms := sinktest.Messages(0, 1)
	if n, err := s.Send(ended, ms); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("while it waits: %d, %v", n, err)
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if n, err := s.Send(ctx, ms); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after it: %d, %v", n, err)
		}
		if err := s.Close(ctx); err == nil {
			t.Error("closed while a write waits")
		}
		s.closed = false
		cancel()
	}
	read := make(chan []byte)
	go func() {
		b, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		read <- b
	}()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if got := <-read; string(got) != string(ms[0].Body)+"\n" {
		t.Errorf("read %q, want the one write that waited", got)
	}
}

func TestOptions(t *testing.T) {
	for text, want := range map[string]string{
		"{}": "", "format: text": "", "format: json": "",
		"format: xml": `format: "xml" is neither text nor json`,
	} {
		var o Options
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		_, err := New(io.Discard, "stdout", o)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
