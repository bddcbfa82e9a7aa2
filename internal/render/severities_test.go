package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

// blocks returns the lines of an output, each with its details.
func blocks(out string) (all []string) {
	for line := range strings.Lines(out) {
		if n := len(all); n > 0 && strings.HasPrefix(line, " ") {
			all[n-1] += line
			continue
		}
		all = append(all, line)
	}
	return all
}

func isNotice(block string) bool { return len(block) > 9 && block[9] == '!' }

// TestSeverities: each line has one severity, which selects it and its details; notices have no severity.
func TestSeverities(t *testing.T) {
	for _, tc := range scenarios {
		t.Run(tc.name, func(t *testing.T) {
			show := func(severities ...event.Severity) []string {
				o := tc.o
				o.Severities = severities
				p := newPlay(t, o)
				tc.play(p)
				return blocks(p.end())
			}
			var got []string
			for i, s := range []event.Severity{event.Failure, event.Warning, event.Recovery, event.Normal} {
				for _, b := range show(s) {
					if i == 0 || !isNotice(b) {
						got = append(got, b)
					}
				}
			}
			want := show()
			slices.Sort(want)
			slices.Sort(got)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("lines of all severities (-want +got):\n%s", d)
			}
		})
	}
}

// TestFailures: the lines of severity failure are those of the full output, and no others.
func TestFailures(t *testing.T) {
	p := newPlay(t, Options{Terminal: true, Width: 120, Severities: []event.Severity{event.Failure}})
	troubles(p)
	golden(t, "failures.txt", p.end())
}

// TestWhoseContainer: the line of a pod with several containers names the failing one.
func TestWhoseContainer(t *testing.T) {
	status := func(key, name string, state obj) obj {
		c := obj{"name": name, "image": "shop/" + name + ":1", "restartCount": 2, "ready": false, "state": state}
		c["lastState"] = obj{"terminated": obj{"exitCode": 1, "reason": "Error"}}
		other := obj{"name": "web", "image": "shop/web:1", "restartCount": 0, "ready": false, "state": obj{"waiting": obj{"reason": "PodInitializing"}}}
		s := obj{"phase": "Pending", "containerStatuses": []any{other}}
		if key == "containerStatuses" {
			s[key] = []any{other, c}
		} else {
			s[key] = []any{c}
		}
		return deep(s).(obj)
	}
	waiting := func(reason string) obj { return obj{"waiting": obj{"reason": reason, "message": "no such key"}} }
	exits := obj{"terminated": obj{"exitCode": 3, "reason": "Error"}}
	for _, tc := range []struct {
		key   string
		state obj
		phase string
		want  string
	}{
		{"initContainerStatuses", waiting(crashLoop), "Pending", "CrashLoopBackOff in init container migrate, exit code 1, 2 restarts"},
		{"containerStatuses", waiting(crashLoop), "Running", "CrashLoopBackOff in container migrate, exit code 1, 2 restarts"},
		{"initContainerStatuses", waiting("CreateContainerConfigError"), "Pending", "CreateContainerConfigError in init container migrate: no such key"},
		{"initContainerStatuses", waiting("ImagePullBackOff"), "Pending", "ImagePullBackOff shop/migrate:1"},
		{"initContainerStatuses", exits, "Failed", "Failed: Error, exit code 3 in init container migrate"},
	} {
		s := status(tc.key, "migrate", tc.state)
		s["phase"] = tc.phase
		if got := podState(obj{"status": s}); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}
