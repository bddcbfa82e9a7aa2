package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/render"
)

// seenEvent is the part of an event that the test reads.
type seenEvent struct {
	Time time.Time `json:"time"`
	Data struct {
		Op       event.Op `json:"op"`
		Resource struct {
			Resource string `json:"resource"`
			Name     string `json:"name"`
		} `json:"resource"`
		Observed struct {
			After *time.Time `json:"after"`
			At    time.Time  `json:"at"`
			Net   bool       `json:"net"`
		} `json:"observed"`
		Absence *event.Absence `json:"absence"`
	} `json:"data"`
}

// away is the time during which the daemon of TestAway does not run.
const away = 45 * time.Second

// TestAway changes objects while no daemon runs, and checks what the journal says about that time.
func TestAway(t *testing.T) {
	t.Parallel()
	ns := fmt.Sprintf("away%d-%d", os.Getpid(), namespaces.Add(1))
	kubectl := func(args ...string) {
		t.Helper()
		if out, err := runKubectl("", cluster.Kubeconfig(), args...); err != nil {
			t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	kubectl("create", "namespace", ns)
	t.Cleanup(func() { _, _ = runKubectl("", cluster.Kubeconfig(), "delete", "namespace", ns, "--wait=false") })
	for _, name := range []string{"edited", "doomed"} {
		kubectl("-n", ns, "create", "configmap", name, "--from-literal=k=1")
	}
	kubectl("-n", ns, "create", "deployment", "web", "--image=app:1")
	kubectl("-n", ns, "rollout", "status", "deployment/web")
	w := startObserver(t, cluster)
	journal := filepath.Join(t.TempDir(), "journal.db")
	run := func() *process {
		p := start(t, cluster, "run", "deploy,rs,po,cm", "-n", ns, "--journal", journal)
		p.wait(t, p.err, "msg=recording")
		return p
	}
	first := run()
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.done

	killed := time.Now()
	wait(away / 3) // longer than clock skew
	from := time.Now().Truncate(time.Second)
	kubectl("-n", ns, "set", "image", "deployment/web", "app=app:2")
	kubectl("-n", ns, "patch", "configmap", "edited", "-p", `{"data":{"k":"2"}}`)
	kubectl("-n", ns, "create", "configmap", "new", "--from-literal=k=1")
	kubectl("-n", ns, "delete", "configmap", "doomed")
	to := time.Now().Truncate(time.Second).Add(time.Second)
	kubectl("-n", ns, "rollout", "status", "deployment/web")
	rolled := time.Now().Truncate(time.Second).Add(time.Second)
	wait(away - time.Since(killed))
	back := time.Now()
	second := run()
	query := func(since, until time.Time, more ...string) string {
		t.Helper()
		args := append([]string{"log", "--journal", journal, "--since", since.Format(time.RFC3339), "--until", until.Format(time.RFC3339)}, more...)
		cmd := exec.Command(tattler(t), args...)
		cmd.Env = append(os.Environ(), "TZ=UTC")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("tattler %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	events := func(since, until time.Time, more ...string) map[string]seenEvent {
		t.Helper()
		all := map[string]seenEvent{}
		for line := range strings.Lines(query(since, until, append(more, "-o", "json")...)) {
			var e seenEvent
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			what := fmt.Sprintf("%s %s/%s", e.Data.Op, e.Data.Resource.Resource, e.Data.Resource.Name)
			if _, again := all[what]; !again { // the first one is ours; controllers write, too
				all[what] = e
			}
		}
		return all
	}
	const deletion = "deleted configmaps/doomed"
	for began := time.Now(); len(events(from, to)) < 4; pause() {
		if time.Since(began) > patience {
			t.Fatalf("from %v to %v the journal has only %v", from, to, events(from, to))
		}
	}
	const absence = "absent absences/"
	for began := time.Now(); events(from, to)[absence].Data.Op == ""; pause() { // it is written after the catch-up
		if time.Since(began) > patience {
			t.Fatalf("no absence among %v", events(from, to))
		}
	}
	wait(3 * time.Second) // folded changes wait until their object is quiet
	second.interrupt(t)

	within := events(from, to)
	for _, what := range []string{"updated deployments/web", "updated configmaps/edited", "created configmaps/new", deletion} {
		e, ok := within[what]
		at := e.Data.Observed
		switch {
		case !ok:
			t.Errorf("no %q", what)
		case at.After == nil || at.After.After(killed) || at.At.Before(back) || at.Net:
			t.Errorf("%q was observed %+v", what, at)
		case what == deletion && !e.Time.Equal(at.At):
			t.Errorf("%q has the time %v, but its time is unknown", what, e.Time)
		case what != deletion && (e.Time.Before(from) || !e.Time.Before(to)):
			t.Errorf("%q has the time %v, which is not from %v to %v", what, e.Time, from, to)
		}
	}
	for what := range events(to.Add(time.Second), back.Add(-time.Second), "--manager", "kubectl-set,kubectl-patch,kubectl-create") { // controllers may
		t.Errorf("%q is recorded for a time without changes", what)
	}
	absent := within[absence].Data
	switch a := absent.Absence; {
	case a == nil || absent.Observed.After == nil:
		t.Fatalf("the absence is %+v", absent)
	case absent.Observed.After.After(killed) || absent.Observed.After.Before(killed.Add(-patience)) || absent.Observed.At.Before(back):
		t.Errorf("killed at %v and back at %v, but absent from %v to %v", killed, back, absent.Observed.After, absent.Observed.At)
	case a.Reason != event.AbsenceStopped || a.Changes < 4 || a.Incomplete > 0:
		t.Errorf("the catch-up is %+v", a)
	}
	text := query(from, to)
	if strings.Contains(text, "existed") {
		t.Errorf("a lifetime is shown, but it is unknown: %s", text)
	}
	span := fmt.Sprintf("%s/%s", within[deletion].Data.Observed.After.Format(time.RFC3339), within[deletion].Data.Observed.At.Format(time.RFC3339))
	for _, want := range []string{
		fmt.Sprintf("%s/%s ! tattler was not running for at most %s: it caught up with %d changes, and missed none", absent.Observed.After.Format(time.RFC3339), absent.Observed.At.Format(time.RFC3339),
			render.UpperBound(absent.Observed.At.Sub(*absent.Observed.After)), absent.Absence.Changes),
		span + " - " + ns + " cm/doomed", within["updated deployments/web"].Time.Format(time.RFC3339) + " ~ " + ns + " deploy/web", "(seen " + within["updated deployments/web"].Data.Observed.At.Format(time.RFC3339) + ")",
	} {
		if !strings.Contains(squeezed(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	whole := query(killed.Add(-time.Minute), back.Add(time.Minute))
	(&truth{t, w, ns}).check(whole)
	if line := regexp.MustCompile(`(\S+) · \S+ +deploy/web +rolled out .*: 1/1 ready, 1 pod replaced`).FindStringSubmatch(whole); line == nil {
		t.Errorf("no unwatched rollout in\n%s", whole)
	} else if at, err := time.Parse(time.RFC3339, line[1]); err != nil || at.Before(from) || at.After(rolled) {
		t.Errorf("rolled out from %v to %v, the line is %q", from, rolled, line[0])
	}
	golden(t, "daemon killed", ns, screensOf(t, cluster.Kubeconfig(), "log", "-n", ns, "--since", killed.Add(-time.Minute).Format(time.RFC3339), "--journal", journal),
		goldenOptions{keep: 10, anyOrder: true, away: true})
}

func wait(d time.Duration) { <-time.After(d) }

// squeezed collapses runs of spaces.
func squeezed(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return strings.Join(lines, "\n")
}
