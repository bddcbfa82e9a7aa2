package test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestNodeTaggerFakeEC2: the real SDK, against a fake EC2.
func TestNodeTaggerFakeEC2(t *testing.T) {
	sources(t)
	may := rights(t)
	ec2 := newFakeEC2(t)
	for i := range 450 {
		ec2.set(fmt.Sprintf("i-a%d", i), map[string]string{"team": fmt.Sprintf("t%d", i)})
	}
	nodes(t, "a", 0, 450)
	kubectl(t, "create", "-f", file(t, "apiVersion: v1\nkind: Node\nmetadata: {name: other}\nspec: {providerID: 'gce://p/z/i-a0'}\n"))
	t.Cleanup(func() { kubectlAtEnd(t, "delete", "node", "other") })
	args := []string{"--every", "2s"}
	p := start(t, may, ec2.env(), "--every", "1h")
	labelled(t, "a-0", `{"tags.example.com/team":"t0","theirs":"yes"}`)
	eventually(t, func() error {
		if n := strings.Count(p.String(), "labelled node="); n != 450 {
			return fmt.Errorf("%d nodes are labelled", n)
		}
		return nil
	})
	if calls, _, most := ec2.count(); calls != 3 || most != 200 {
		t.Errorf("%d calls of up to %d for 450 nodes, want 3 of 200", calls, most)
	}

	// A node that joins later is the only one that is asked for.
	ec2.set("i-a450", map[string]string{"team": "late"})
	nodes(t, "a", 450, 451)
	labelled(t, "a-450", `{"tags.example.com/team":"late","theirs":"yes"}`)
	if calls, _, most := ec2.count(); calls != 1 || most != 1 {
		t.Errorf("%d calls of up to %d for one node", calls, most)
	}
	// What somebody else does to our labels is undone, and the cloud is not asked for that; others are left alone.
	kubectl(t, "label", "--overwrite", "node", "a-1", "tags.example.com/team=by-hand", "tags.example.com/by=hand", "mine=yes")
	labelled(t, "a-1", `{"mine":"yes","tags.example.com/by":"hand","tags.example.com/team":"t1","theirs":"yes"}`)
	if calls, _, _ := ec2.count(); calls != 0 {
		t.Errorf("%d calls for a label", calls)
	}
	p.stop(t)
	if n := strings.Count(p.String(), "labelled node="); n != 452 {
		t.Errorf("it has written %d times, want 452", n)
	}

	// Tags that change while the program is down, and then while it runs; an invalid label; a tag that is removed.
	long := strings.Repeat("x", 70)
	ec2.set("i-a0", map[string]string{"team": "new", "a/b c": "d e!", "a_b_c": "exact", "+": "plus", "empty": "", "long": long})
	p = start(t, may, ec2.env(), args...)
	labelled(t, "a-0", `{"tags.example.com/a_b_c":"exact","tags.example.com/empty":"","tags.example.com/long":"`+long[:63]+`","tags.example.com/team":"new","theirs":"yes"}`)
	p.prints(t, `another one has its label node=a-0 instance=i-a0 tag="a/b c" other=a_b_c`)
	p.prints(t, `nothing of its key can be in a label node=a-0 instance=i-a0 tag=+`)
	ec2.set("i-a0", map[string]string{"Name": "web 1"})
	labelled(t, "a-0", `{"tags.example.com/Name":"web_1","theirs":"yes"}`)
	ec2.set("i-a0", nil)
	labelled(t, "a-0", `{"theirs":"yes"}`)

	// A node that goes is not made anew.
	kubectl(t, "delete", "node", "a-2")
	ec2.set("i-a2", map[string]string{"team": "gone"})
	ec2.set("i-a3", map[string]string{"team": "there"})
	labelled(t, "a-3", `{"tags.example.com/team":"there","theirs":"yes"}`)
	if got := kubectl(t, "get", "node", "a-2", "--ignore-not-found"); got != "" {
		t.Error(got)
	}

	// Throttled: the SDK tries again, and where that is not enough, so does the controller. The labels stay.
	ec2.count()
	ec2.refuse(8)
	ec2.set("i-a3", map[string]string{"team": "throttled"})
	labelled(t, "a-3", `{"tags.example.com/team":"throttled","theirs":"yes"}`)
	if _, refused, _ := ec2.count(); refused != 8 {
		t.Errorf("it was refused %d times, want 8", refused)
	}
	p.prints(t, "RequestLimitExceeded")
	labelled(t, "a-4", `{"tags.example.com/team":"t4","theirs":"yes"}`)
	if got := kubectl(t, "get", "node", "other", "-o", "jsonpath={.metadata.labels}"); got != "" {
		t.Errorf("a node of another cloud has the labels %s", got)
	}
	p.stop(t)
}

// TestNodeTaggerConflict: what others write while the program waits for the cloud's answer.
func TestNodeTaggerConflict(t *testing.T) {
	may := rights(t)
	ec2 := newFakeEC2(t)
	release := ec2.hold()
	t.Cleanup(release) // before the fake ends, which waits for its answers
	for i := range 4 {
		ec2.set(fmt.Sprintf("i-c%d", i), map[string]string{"team": fmt.Sprintf("t%d", i)})
	}
	ec2.set("i-new", map[string]string{"team": "new"})
	nodes(t, "c", 0, 4)
	p := start(t, may, ec2.env(), "--every", "1h")
	ec2.waits(t)

	// Somebody else's labels, one of which is to be ours: theirs by server-side apply, so the field has another owner.
	const theirs = "apiVersion: v1\nkind: Node\nmetadata: {name: c-0, labels: {mine: 'yes', tags.example.com/team: mine}}\n"
	kubectl(t, "apply", "--server-side", "--field-manager=somebody", "-f", file(t, theirs))
	// A node that is gone when the answer comes, and another one that is a new node of the same name by then.
	kubectl(t, "delete", "node", "c-1", "c-2")
	kubectl(t, "create", "-f", file(t, "apiVersion: v1\nkind: Node\nmetadata: {name: c-2}\nspec: {providerID: 'aws:///eu-west-1a/i-new'}\n"))
	release()
	labelled(t, "c-0", `{"mine":"yes","tags.example.com/team":"t0","theirs":"yes"}`)
	labelled(t, "c-2", `{"tags.example.com/team":"new"}`)
	labelled(t, "c-3", `{"tags.example.com/team":"t3","theirs":"yes"}`) // they do not hold up the others
	if got := kubectl(t, "get", "node", "c-1", "--ignore-not-found"); got != "" {
		t.Errorf("a node that was deleted was made anew: %s", got)
	}
	if out := p.String(); strings.Contains(out, "labels=map[tags.example.com/team:t2]") || strings.Contains(out, "reconcile failed") {
		t.Errorf("a new node got the labels of the old one, or that was a failure:\n%s", out)
	}
	// The new owner of the field is named.
	out, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "--field-manager=somebody", "-f", file(t, theirs))
	if err == nil || !strings.Contains(err.Error(), `conflict with "node-tagger"`) {
		t.Errorf("another owner of the label: %s, %v", out, err)
	}
	p.stop(t)
}

// TestNodeTaggerFile: a file in place of EC2.
func TestNodeTaggerFile(t *testing.T) {
	may := rights(t)
	nodes(t, "f", 0, 1)
	tags := file(t, `{"i-f0": {"team": "web"}}`)
	p := start(t, may, nil, "--tags", tags, "--every", "1s")
	p.prints(t, "synced nodes=")
	labelled(t, "f-0", `{"tags.example.com/team":"web","theirs":"yes"}`)
	if err := os.WriteFile(tags, []byte(`{"i-f0": {"team": "db"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	labelled(t, "f-0", `{"tags.example.com/team":"db","theirs":"yes"}`)
	if err := os.WriteFile(tags, []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.prints(t, "unexpected end of JSON input")
	labelled(t, "f-0", `{"tags.example.com/team":"db","theirs":"yes"}`) // they stay as they were
	p.stop(t)
}

// TestNodeTaggerRights: without a right to write it says so, and goes on once it has it.
func TestNodeTaggerRights(t *testing.T) {
	ec2 := newFakeEC2(t)
	ec2.set("i-r0", map[string]string{"team": "a"})
	nodes(t, "r", 0, 1)
	reader := user(t, "reader")
	if line := start(t, reader, ec2.env()).fails(t, 1); !strings.Contains(line, "forbidden") || !strings.Contains(line, "manifest.yaml") {
		t.Error(line)
	}
	kubectl(t, "create", "clusterrole", "reads", "--verb=list,watch", "--resource=nodes")
	kubectl(t, "create", "clusterrolebinding", "reads", "--clusterrole=reads", "--user=reader")
	granted(t, "reader", "list")
	p := start(t, reader, ec2.env(), "--every", "1s")
	p.prints(t, `cannot patch resource \"nodes\"`)
	kubectl(t, "apply", "-f", "../manifest.yaml")
	kubectl(t, "create", "clusterrolebinding", "writes", "--clusterrole=node-tagger", "--user=reader")
	t.Cleanup(func() { kubectlAtEnd(t, "delete", "clusterrolebinding", "reads", "writes") })
	t.Cleanup(func() { kubectlAtEnd(t, "delete", "clusterrole", "reads") })
	labelled(t, "r-0", `{"tags.example.com/team":"a","theirs":"yes"}`)
	p.stop(t)
}

// TestNodeTaggerBadInput: what is wrong is one line, which says what to do.
func TestNodeTaggerBadInput(t *testing.T) {
	t.Parallel()
	ec2 := newFakeEC2(t)
	for _, tc := range []struct {
		why, kubeconfig string
		env, args       []string
		code            int
		want            string
	}{
		{"no kubeconfig", "", ec2.env(), nil, 1, "no cluster is named"},
		{"an argument", cluster.Kubeconfig(), ec2.env(), []string{"what"}, 2, `unexpected argument "what"`},
		{"a prefix without a slash", cluster.Kubeconfig(), ec2.env(), []string{"--prefix", "tags"}, 2, `--prefix "tags"`},
		{"no time", cluster.Kubeconfig(), ec2.env(), []string{"--every", "0s"}, 2, "--every 0s"},
		{"no such file", cluster.Kubeconfig(), nil, []string{"--tags", "/nonexistent"}, 2, "--tags: stat /nonexistent: no such file"},
		{"no region", cluster.Kubeconfig(), nil, nil, 2, "set AWS_REGION"},
	} {
		began := time.Now()
		line := start(t, tc.kubeconfig, tc.env, tc.args...).fails(t, tc.code)
		if !regexp.MustCompile("^node-tagger: ").MatchString(line) || !strings.Contains(line, tc.want) {
			t.Errorf("%s: after %v: %q, want %q", tc.why, time.Since(began), line, tc.want)
		}
	}
}
