package examples

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWorkqueue runs both programs beside each other, and compares what they do.
func TestWorkqueue(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "work")
	both := []string{"workqueue-by-hand", "workqueue"}
	run := func() (ps []*process) {
		for _, example := range both {
			ps = append(ps, start(t, example, rights(t, example), "--namespace", ns))
		}
		return ps
	}
	ps := run()
	step := func(lines ...string) {
		t.Helper()
		for _, p := range ps {
			for _, line := range lines {
				p.prints(t, line+"\n")
			}
		}
	}
	step("in the namespace " + ns)
	kubectl(t, "create", "configmap", "a", "--from-literal=x=1", "-n", ns)
	step("handled " + ns + "/a: 1 keys")
	kubectl(t, "patch", "configmap", "a", "-n", ns, "-p", `{"data":{"y":"2"}}`)
	step("handled " + ns + "/a: 2 keys")
	kubectl(t, "delete", "configmap", "a", "-n", ns)
	step("gone " + ns + "/a")

	kubectl(t, "create", "-f", manifest(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: %s, annotations: {fail: 'yes'}}\n", ns)))
	for n := range 6 {
		step(fmt.Sprintf("failed %s/b, %d in a row: its annotation wants it to fail", ns, n+1))
	}
	// From here on they differ: the tutorials drop the key, and a controller does not.
	dropped := "dropped " + ns + "/b"
	ps[0].prints(t, dropped)
	ps[1].prints(t, "failed "+ns+"/b, 8 in a row")
	kubectl(t, "create", "configmap", "c", "--from-literal=x=1", "-n", ns) // no other key waits for it
	step("handled " + ns + "/c: 1 keys")
	kubectl(t, "annotate", "--overwrite", "configmap", "b", "fail=no", "-n", ns)
	step("handled " + ns + "/b: 0 keys")

	summary := func(p *process) map[string][]string {
		byKey := map[string][]string{}
		for _, line := range regexp.MustCompile(`(?m)^(?:handled|failed|gone|dropped) (\S+/[abc])\b.*$`).FindAllStringSubmatch(p.out.String(), -1) {
			if seen := byKey[line[1]]; !slices.Contains(seen, line[0]) {
				byKey[line[1]] = append(seen, line[0])
			}
		}
		return byKey
	}
	compare := func() {
		t.Helper()
		for _, p := range ps {
			p.stop(t)
		}
		hand, ours := summary(ps[0]), summary(ps[1])
		for key, want := range hand {
			n := 0 // their last lines are the same, and so are those up to where one drops it
			for n < len(want) && want[n] != dropped {
				n++
			}
			got := ours[key]
			if len(got) < n || !slices.Equal(got[:n], want[:n]) || got[len(got)-1] != want[len(want)-1] {
				t.Errorf("by hand:\n%s\nby informer/controller:\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
			}
		}
		if len(hand) != len(ours) {
			t.Errorf("by hand: %v, by informer/controller: %v", hand, ours)
		}
	}
	compare()
	if strings.Contains(ps[1].out.String(), dropped) {
		t.Error("a controller has dropped a key")
	}

	kubectl(t, "delete", "configmap", "b", "-n", ns) // while nobody runs
	ps = run()
	step("in the namespace "+ns, "handled "+ns+"/c: 1 keys")
	compare()
	for _, p := range ps {
		if strings.Contains(p.out.String(), "/b") {
			t.Errorf("what was deleted before the start was handled:\n%s", p.out)
		}
	}
}

// TestWorkqueueRights: a right that is lost while they run does not end them, and they go on once it is back.
func TestWorkqueueRights(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "work")
	reader := user(t, "reader-"+ns)
	for _, example := range []string{"workqueue-by-hand", "workqueue"} {
		if line := fails(t, command(example, reader, "--namespace", ns), 1); !strings.Contains(line, "forbidden") {
			t.Errorf("%s without rights: %s", example, line)
		}
		empty := start(t, example, cluster.Kubeconfig(), "--namespace", "nope-"+ns)
		empty.prints(t, "synced: 0 ConfigMaps in the namespace nope-"+ns+"\nthe namespace has no ConfigMaps: ")
		empty.stop(t)
		if line := fails(t, command(example, reader, "--workers", "0"), 2); !strings.Contains(line, "--workers") {
			t.Errorf("%s without workers: %s", example, line)
		}
	}
	kubectl(t, "create", "rolebinding", "reads", "--clusterrole=view", "--user=reader-"+ns, "-n", ns)
	lists(t, "reader-"+ns, ns, "", "configmaps")
	away := newLine(t)
	var ps []*process
	for _, example := range []string{"workqueue-by-hand", "workqueue"} {
		p := start(t, example, away.kubeconfig(t, reader), "--namespace", ns)
		p.prints(t, "in the namespace "+ns+"\n")
		ps = append(ps, p)
	}
	away.cut()
	kubectl(t, "create", "configmap", "a", "-n", ns)
	away.mend()
	for _, p := range ps {
		p.prints(t, "handled "+ns+"/a: 0 keys\n")
		p.stop(t)
	}
	if away.connections() == 0 {
		t.Error(errors.New("nobody came by the line that was cut"))
	}
}
