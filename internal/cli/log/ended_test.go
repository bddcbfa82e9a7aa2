package log

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/selection"
)

// TestNoDaemon: without a daemon, the output says once where the journal ends, unless only earlier changes were requested.
func TestNoDaemon(t *testing.T) {
	path := recorded(t)
	alone := func(context.Context, string) bool { return false }
	const end = "no daemon is running: the journal ends at 10:05:00\n"
	for _, tc := range []struct {
		why, said string
		o         Options
	}{
		{"all", "1 quiet change not shown (--noise); " + end, Options{}},
		{"nothing of that kind", "no such change; the journal reaches back to 10:00:00; " + end, Options{Options: selection.Options{Types: []string{"cm/none"}}}},
		{"up to an earlier time", "1 quiet change not shown (--noise)\n", Options{Options: selection.Options{Until: "10:04"}}},
		{"a daemon runs", "1 quiet change not shown (--noise)\n", Options{Recording: running}},
	} {
		if tc.o.Recording == nil {
			tc.o.Recording = alone
		}
		if _, said, err := play(t, path, tc.o); said != tc.said || err != nil {
			t.Errorf("%s: %q, %v; want %q", tc.why, said, err, tc.said)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	stderr := &until{text: "\n", then: cancel}
	o := &Options{IO: &terminal.IO{Out: io.Discard, Err: stderr, Width: func() int { return 0 }}, Output: "json", Follow: true, Recording: alone, Now: hourLater, Limit: 50}
	o.Past.Path = path
	if err := Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	if got, want := stderr.String(), "no daemon is running: the journal ends at 10:05:00, and goes on once tattler run starts\n"; !strings.HasPrefix(got, want) || strings.Count(got, "no daemon") != 1 {
		t.Errorf("-f: %q, want %q", got, want)
	}
}

// until does something when a text was written to it.
type until struct {
	bytes.Buffer
	text string
	then func()
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.Buffer.Write(p)
	if strings.Contains(u.String(), u.text) {
		u.then()
	}
	return n, err
}
