package examples

import (
	"fmt"
	"strings"
	"testing"
)

// node makes a node that is deleted after the test.
func node(t *testing.T, name, labels string) {
	t.Helper()
	kubectl(t, "create", "-f", manifest(t, fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {%s}}\n", name, labels)))
	t.Cleanup(func() { remove(t, "node", name) })
}

func TestNodeLabelLogger(t *testing.T) {
	t.Parallel()
	may := rights(t, "node-label-logger")
	away := newLine(t)
	p := start(t, "node-label-logger", away.kubeconfig(t, may), "--label", "logged=yes")
	p.prints(t, "no node has the label yet")
	node(t, "logged-a", "logged: 'yes'")
	node(t, "logged-b", "logged: 'no'")
	p.prints(t, `node joined node=logged-a`)
	kubectl(t, "label", "--overwrite", "node", "logged-b", "logged=yes") // it joins what is selected
	p.prints(t, `node joined node=logged-b`)
	kubectl(t, "label", "node", "logged-a", "other=label") // it is there already
	node(t, "logged-c", "logged: 'yes'")
	p.prints(t, `node joined node=logged-c`)
	away.cut() // what joins while the API server cannot be reached is logged once that is over, and nothing twice
	node(t, "logged-d", "logged: 'yes'")
	away.mend()
	p.prints(t, `node joined node=logged-d`)
	p.stop(t)
	if n := strings.Count(p.out.String(), "node joined"); n != 4 {
		t.Errorf("%d nodes joined:\n%s", n, p.out)
	}

	again := start(t, "node-label-logger", may, "--label", "logged=yes", "--initial")
	for _, name := range []string{"a", "b", "c", "d"} {
		again.prints(t, `node joined node=logged-`+name)
	}
	again.stop(t)
	if line := fails(t, command("node-label-logger", may, "--label", "a b"), 2); !strings.Contains(line, `--label "a b"`) {
		t.Error(line)
	}
}
