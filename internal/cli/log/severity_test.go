package log

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
)

// crashing returns a pod whose container was restarted the given number of times.
func crashing(restarts int) obj {
	return obj{"spec": obj{"nodeName": "n1"}, "status": obj{"phase": "Running", "containerStatuses": []any{obj{
		"name": "app", "restartCount": restarts, "ready": false,
		"lastState": obj{"terminated": obj{"exitCode": 1, "reason": "Error"}},
		"state":     obj{"waiting": obj{"reason": "CrashLoopBackOff"}},
	}}}}
}

// TestSeverityOfLines: a severity selects printed lines, including summaries, however old their changes are.
func TestSeverityOfLines(t *testing.T) {
	b := newBook(t, start)
	b.add(maps, event.Created, "shop", "a", nil, data("0"))
	b.add(pods, event.Snapshot, "shop", "web", nil, crashing(1))
	for i := range 3 {
		b.add(pods, event.Updated, "shop", "web", crashing(i+1), crashing(i+2))
	}
	var rows []journal.Row
	for i := range 3100 {
		b.at = start.Add(time.Minute + time.Duration(i)*10*time.Millisecond)
		rows = append(rows, b.row(maps, event.Updated, "shop", "a", data(fmt.Sprint(i)), data(fmt.Sprint(i+1))))
	}
	b.append(rows...)
	path := b.close()
	for _, tc := range []struct {
		why  string
		o    Options
		want string // the lines, without their times
		said string
	}{
		{"the last lines", Options{Options: selection.Options{Severities: []string{"failure"}}}, "· shop     pod/web                        CrashLoopBackOff: exit code 1, 4 restarts  (4 changes; --story r2z4kwy2)\n", ""},
		{"a time range", Options{Options: selection.Options{Severities: []string{"failure"}, Since: "10:00"}}, "· shop     pod/web                        CrashLoopBackOff: exit code 1, 4 restarts  (4 changes; --story r2z4kwy2)\n", ""},
		{"none", Options{Options: selection.Options{Severities: []string{"warning"}}}, "", "no such change; the journal reaches back to 10:00:00"},
		{"none in a time range", Options{Options: selection.Options{Severities: []string{"failure"}, Since: "10:02"}}, "", "no such change since 10:02:00"},
	} {
		tc.o.Output = text
		out, said, err := play(t, path, tc.o)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
		var got strings.Builder
		for line := range strings.Lines(out) {
			_, line, _ = strings.Cut(line, " ")
			got.WriteString(line)
		}
		if got.String() != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.why, &got, tc.want)
		}
		if !strings.Contains(said, tc.said) {
			t.Errorf("%s: said %q, want %q", tc.why, said, tc.said)
		}
	}
}
