package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func place(t *testing.T) string { return filepath.Join(t.TempDir(), "changes.jsonl") }

func newSink(t *testing.T, o Options) *Sink {
	t.Helper()
	s := must(New(o))(t)
	t.Cleanup(func() {
		if err := s.Close(t.Context()); err != nil && !t.Failed() {
			t.Logf("Close: %v", err)
		}
	})
	return s
}

func send(t *testing.T, s *Sink, from, count int) {
	t.Helper()
	if n, err := s.Send(t.Context(), sinktest.Messages(from, count)); err != nil || n != count {
		t.Fatalf("Send: %d of %d, %v", n, count, err)
	}
}

func wantIDs(t *testing.T, path string, from, count int) {
	t.Helper()
	var want []string
	for _, m := range sinktest.Messages(from, count) {
		want = append(want, m.ID)
	}
	if got := readIDs(t, path); !slices.Equal(got, want) {
		t.Errorf("%s has %d events, want %d from %d on:\n%v\n%v", path, len(got), count, from, got, want)
	}
}

func TestTornLines(t *testing.T) {
	line := string(sinktest.Messages(0, 1)[0].Body)
	for _, tc := range []struct {
		why, before, want string
		foreign           bool
	}{
		{"an empty file", "", "", false},
		{"whole lines stay", line + "\n" + line + "\n", line + "\n" + line + "\n", false},
		{"a torn one goes", line + "\n" + line[:100], line + "\n", false},
		{"a line without its end was not acknowledged", line + "\n" + line, line + "\n", false},
		{"nothing but a torn line", line[:50], "", false},
		{"one byte is the beginning of an event", line + "\n{", line + "\n", false},
		{"a torn line longer than what is read at a time", line + "\n" + ours + strings.Repeat("x", 200<<10), line + "\n", false},
		{"text of others", "dear diary", "dear diary", true},
		{"JSON of others", line + "\n" + `{"kind":"Pod"`, line + "\n" + `{"kind":"Pod"`, true},
		{"lines of others have their place", "dear diary\n", "dear diary\n", false},
	} {
		path := place(t)
		if err := os.WriteFile(path, []byte(tc.before), 0o600); err != nil {
			t.Fatal(err)
		}
		s := must(New(Options{Path: path}))(t)
		err := s.Open()
		if errors.Is(err, errForeign) != tc.foreign || err != nil && !tc.foreign {
			t.Errorf("%s: %v", tc.why, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: the file has %d bytes, want %d (%v)", tc.why, len(got), len(tc.want), err)
		}
	}
}

// TestNotAgain checks that events at the end of the file are acknowledged without being written again, unless they
// are replayed later.
func TestNotAgain(t *testing.T) {
	path := place(t)
	opened := func() *Sink { return must(New(Options{Path: path}))(t) }
	s := opened()
	send(t, s, 0, 3)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = opened()
	send(t, s, 1, 1)
	send(t, s, 2, 3)
	wantIDs(t, path, 0, 5)
	send(t, s, 4, 1)
	if got := readIDs(t, path); len(got) != 6 || got[5] != got[4] {
		t.Errorf("%d events after one was replayed, want 6: %v", len(got), got)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestAgain checks that a replayed message is written, even if the end of the file has it.
func TestAgain(t *testing.T) {
	path := place(t)
	s := must(New(Options{Path: path}))(t)
	send(t, s, 0, 3)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = newSink(t, Options{Path: path})
	ms := sinktest.Messages(0, 3)
	for i := range ms {
		ms[i].Again = i > 0
	}
	if n, err := s.Send(t.Context(), ms); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if got := readIDs(t, path); len(got) != 5 || got[3] != ms[1].ID || got[4] != ms[2].ID {
		t.Errorf("%v", got)
	}
}

// TestNotAgainAfterMuch uses a file that is longer than the part that is searched.
func TestNotAgainAfterMuch(t *testing.T) {
	path := place(t)
	other := strings.Repeat(`{"id":"x","text":"`+strings.Repeat("x", 1000)+`"}`+"\n", tail/1000)
	if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := must(New(Options{Path: path}))(t)
		send(t, s, 0, 2)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := int64(len(other) + len(sinktest.Messages(0, 1)[0].Body) + len(sinktest.Messages(1, 1)[0].Body) + 2)
	if info, err := os.Stat(path); err != nil || info.Size() != want {
		t.Errorf("%d bytes, %v; want %d", info.Size(), err, want)
	}
}

// TestNotAgainAfterLongLine uses batches that end with a message of 1 to 5 times the part that is searched.
func TestNotAgainAfterLongLine(t *testing.T) {
	for _, size := range []int{tail, 5 * tail} {
		path := place(t)
		ms := sinktest.Messages(0, 10)
		last := &ms[9].Body
		*last = append((*last)[:len(*last)-1:len(*last)-1], `,"long":"`+strings.Repeat("x", size)+`"}`...)
		for range 2 {
			s := must(New(Options{Path: path}))(t)
			if n, err := s.Send(t.Context(), ms); n != len(ms) || err != nil {
				t.Fatal(n, err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantIDs(t, path, 0, 10)
	}
}

func TestRotation(t *testing.T) {
	path := place(t)
	const first = 20 // from here on all events have the same length
	one := len(sinktest.Messages(first, 1)[0].Body) + 1
	s := newSink(t, Options{Path: path, Rotate: Rotate{Size: sink.Size(3 * one), Keep: 2}})
	send(t, s, first, 3)
	if exists(path + ".1") {
		t.Error("a file of just the size was rotated")
	}
	send(t, s, first+3, 1)
	wantIDs(t, path, first, 4)
	send(t, s, first+4, 8)
	if exists(path + ".3") {
		t.Error("more files are kept than asked for")
	}
	wantIDs(t, path, first+3, 9)
	for n, name := range []string{path, path + ".1", path + ".2"} {
		if got := len(readLines(t, name)); got != 3 {
			t.Errorf("file %d has %d lines, want 3", n, got)
		}
	}
}

// TestLongLine checks that a line longer than the file's limit gets its own file.
func TestLongLine(t *testing.T) {
	path := place(t)
	s := newSink(t, Options{Path: path, Rotate: Rotate{Size: 10, Keep: 9}})
	send(t, s, 0, 3)
	wantIDs(t, path, 0, 3)
	if got := len(readLines(t, path)); got != 1 || !exists(path+".2") || exists(path+".3") {
		t.Errorf("the last file has %d lines, want 1, in 3 files", got)
	}
}

func TestRotatedByOthers(t *testing.T) {
	for _, tc := range []struct {
		why  string
		do   func(path string) error
		from int // of the first event that remains in the file
	}{
		{"renamed, as logrotate does", func(p string) error { return os.Rename(p, p+".old") }, 2},
		{"removed", os.Remove, 2},
		{"replaced by a new file", func(p string) error {
			return errors.Join(os.WriteFile(p+".new", nil, 0o600), os.Rename(p+".new", p))
		}, 2},
		{"copied and cut, as logrotate's copytruncate does", func(p string) error { return os.Truncate(p, 0) }, 2},
		{"left alone", func(string) error { return nil }, 0},
	} {
		path := place(t)
		s := newSink(t, Options{Path: path})
		send(t, s, 0, 2)
		if err := tc.do(path); err != nil {
			t.Fatal(err)
		}
		send(t, s, 2, 2)
		wantIDs(t, path, tc.from, 4-tc.from)
		if t.Failed() {
			t.Fatal(tc.why)
		}
	}
}

// TestCutByOthers: what another program leaves at the end of the file is not continued as a line.
func TestCutByOthers(t *testing.T) {
	line := int64(len(sinktest.Messages(0, 1)[0].Body)) + 1
	for _, tc := range []struct {
		why  string
		do   func(path string) error
		want []int // events; nil: an error, and nothing is written
	}{
		{"within a line", func(p string) error { return os.Truncate(p, line+line/2) }, []int{0, 2}},
		{"at the end of a line", func(p string) error { return os.Truncate(p, line) }, []int{0, 2}},
		{"a newline was cut", func(p string) error { return os.Truncate(p, 2*line-1) }, []int{0, 2}},
		{"lines were added", func(p string) error { return appendText(p, string(sinktest.Messages(0, 1)[0].Body)+"\n") }, []int{0, 1, 0, 2}},
		{"a part of a line was added", func(p string) error { return appendText(p, "dear diary") }, nil},
	} {
		path := place(t)
		s := newSink(t, Options{Path: path})
		send(t, s, 0, 2)
		if err := tc.do(path); err != nil {
			t.Fatal(err)
		}
		before := must(os.ReadFile(path))(t)
		if _, err := s.Send(t.Context(), sinktest.Messages(2, 1)); errors.Is(err, errForeign) != (tc.want == nil) {
			t.Errorf("%s: %v", tc.why, err)
		}
		after := must(os.ReadFile(path))(t)
		if tc.want == nil {
			if string(after) != string(before) {
				t.Errorf("%s: the file was changed", tc.why)
			}
			continue
		}
		var want []string
		for _, i := range tc.want {
			want = append(want, sinktest.Messages(i, 1)[0].ID)
		}
		if got := readIDs(t, path); !slices.Equal(got, want) || !strings.HasSuffix(string(after), "\n") {
			t.Errorf("%s: %v, want %v", tc.why, got, want)
		}
	}
}

func appendText(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// TestNoPermission checks that a file without permission is retried. The error is made up, because the tests may run
// as root.
func TestNoPermission(t *testing.T) {
	s := newSink(t, Options{Path: place(t)})
	denied := &fs.PathError{Op: "open", Path: s.o.Path, Err: syscall.EACCES}
	open := s.open
	s.open = func(string) (handle, error) { return nil, denied }
	if n, err := s.Send(t.Context(), sinktest.Messages(0, 1)); n != 0 || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%d, %v", n, err)
	}
	s.open = open
	send(t, s, 0, 1)
	wantIDs(t, s.o.Path, 0, 1)
}

// TestRotationFails checks that the file is kept until it can be rotated.
func TestRotationFails(t *testing.T) {
	path := place(t)
	s := newSink(t, Options{Path: path, Rotate: Rotate{Size: 10, Keep: 1}})
	send(t, s, 0, 1)
	if err := os.MkdirAll(filepath.Join(path+".1", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Send(t.Context(), sinktest.Messages(1, 1)); n != 0 || err == nil || !strings.Contains(err.Error(), "rotate") {
		t.Errorf("%d, %v", n, err)
	}
	if err := os.RemoveAll(path + ".1"); err != nil {
		t.Fatal(err)
	}
	send(t, s, 1, 1)
	wantIDs(t, path, 0, 2)
}

// faulty is a file whose calls fail.
type faulty struct {
	handle
	fail  map[string]error
	syncs atomic.Int64 // the timer's goroutine syncs as well
}

func (f *faulty) Write(b []byte) (int, error) {
	if err := f.fail["write"]; err != nil {
		n, werr := f.handle.Write(b[:len(b)/2])
		return n, errors.Join(err, werr)
	}
	return f.handle.Write(b)
}

func (f *faulty) Truncate(size int64) error {
	if err := f.fail["truncate"]; err != nil {
		return err
	}
	return f.handle.Truncate(size)
}

func (f *faulty) Sync() error {
	f.syncs.Add(1)
	if err := f.fail["sync"]; err != nil {
		return err
	}
	return f.handle.Sync()
}

func (f *faulty) Stat() (fs.FileInfo, error) {
	if err := f.fail["stat"]; err != nil {
		return nil, err
	}
	return f.handle.Stat()
}

func newFaulty(t *testing.T, o Options) (*Sink, *faulty) {
	t.Helper()
	o.Path = place(t)
	s := newSink(t, o)
	f := &faulty{fail: map[string]error{}}
	open := s.open
	s.open = func(path string) (handle, error) {
		var err error
		f.handle, err = open(path)
		return f, err
	}
	return s, f
}

// TestFaults checks that, whatever fails, nothing is acknowledged without being there, no line is partial or
// repeated, and the sink recovers.
func TestFaults(t *testing.T) {
	for _, faults := range [][]string{{"write"}, {"sync"}, {"stat"}, {"write", "truncate"}, {"sync", "truncate"}, {"write", "stat"}} {
		s, f := newFaulty(t, Options{})
		send(t, s, 0, 2)
		for _, name := range faults {
			f.fail[name] = syscall.EIO
		}
		for range 3 {
			if n, err := s.Send(t.Context(), sinktest.Messages(2, 2)); n != 0 || !errors.Is(err, syscall.EIO) {
				t.Errorf("%v: %d, %v", faults, n, err)
			}
		}
		clear(f.fail)
		send(t, s, 2, 2)
		wantIDs(t, s.o.Path, 0, 4)
	}
}

// TestTornAndMoved checks that a partial line that could not be cut off at once is not left in a file that others
// rotate.
func TestTornAndMoved(t *testing.T) {
	s, f := newFaulty(t, Options{})
	send(t, s, 0, 2)
	f.fail["write"], f.fail["truncate"] = syscall.EIO, syscall.EIO
	if _, err := s.Send(t.Context(), sinktest.Messages(2, 1)); err == nil {
		t.Fatal("it was written")
	}
	clear(f.fail)
	if err := os.Rename(s.o.Path, s.o.Path+".1"); err != nil {
		t.Fatal(err)
	}
	send(t, s, 2, 1)
	wantIDs(t, s.o.Path, 0, 3)
}

func TestSync(t *testing.T) {
	for _, tc := range []struct {
		policy              Sync
		sent, later, closed int64 // syncs by then
	}{
		{Always, 3, 3, 3},
		{Interval, 0, 1, 2},
		{Never, 0, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, f := newFaulty(t, Options{Sync: tc.policy})
			for n := range 3 {
				send(t, s, n, 1)
			}
			if f.syncs.Load() != tc.sent {
				t.Errorf("%s: %d syncs at once, want %d", tc.policy, f.syncs.Load(), tc.sent)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if f.syncs.Load() != tc.later {
				t.Errorf("%s: %d syncs after the interval, want %d", tc.policy, f.syncs.Load(), tc.later)
			}
			if tc.policy == Interval {
				send(t, s, 3, 1)
			}
			if err := s.Close(t.Context()); err != nil || f.syncs.Load() != tc.closed {
				t.Errorf("%s: %d syncs after Close, want %d (%v)", tc.policy, f.syncs.Load(), tc.closed, err)
			}
		})
	}
}

// TestLateSyncFails checks that the next call returns the error of a sync in the background.
func TestLateSyncFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newFaulty(t, Options{Sync: Interval})
		f.fail["sync"] = syscall.EIO
		send(t, s, 0, 1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		clear(f.fail)
		if n, err := s.Send(t.Context(), sinktest.Messages(1, 1)); n != 0 || !errors.Is(err, syscall.EIO) {
			t.Errorf("%d, %v", n, err)
		}
		send(t, s, 1, 1)
		wantIDs(t, s.o.Path, 0, 2)
	})
}

func TestMode(t *testing.T) {
	path := place(t)
	send(t, newSink(t, Options{Path: path}), 0, 1)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want one that keeps others out", info.Mode(), err)
	}
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct{ why, text, want string }{
		{"the least", "path: a.jsonl", ""},
		{"all", "{path: a.jsonl, rotate: {size: 100Mi, keep: 3}, sync: interval, syncEvery: 5s}", ""},
		{"a file has a name", "sync: never", "path"},
		{"a size is a size", "{path: a, rotate: {size: big}}", `read size "big"`},
		{"keep has no effect", "{path: a, rotate: {keep: 3}}", "keep has no effect"},
		{"a policy is one of three", "{path: a, sync: sometimes}", `"sometimes"`},
		{"an interval without its policy", "{path: a, syncEvery: 5s}", "only for sync: interval"},
		{"nothing negative", "{path: a, sync: interval, syncEvery: -5s}", "must not be negative"},
	} {
		var o Options
		err := yaml.Unmarshal([]byte(tc.text), &o)
		if err == nil {
			_, err = New(o)
		}
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
		if tc.why == "all" && fmt.Sprint(o) != fmt.Sprint(Options{"a.jsonl", Rotate{100 << 20, 3}, Interval, 5 * time.Second}) {
			t.Errorf("read as %+v", o)
		}
	}
}
