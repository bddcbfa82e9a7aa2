package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
)

// partsCRD is a CRD with the given properties in the spec.
func partsCRD(properties string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"parts.forms.example.com"},
"spec":{"group":"forms.example.com","scope":"Namespaced","names":{"plural":"parts","singular":"part","kind":"Part"},"versions":[{"name":"v1","served":true,
"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{%s}}}}}}]}}`, properties)
}

// TestConverted: a CRD gets a new default while the daemon runs, and another one while it does not. No object
// is written. The journal must have the new form of each object, and no update may be listed.
func TestConverted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	dir := t.TempDir()
	apply := func(text string) {
		t.Helper()
		file := filepath.Join(dir, "applied.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := cluster.Kubectl(ctx, "apply", "-f", file); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	const size, color, shape = `"size":{"type":"integer"}`, `,"color":{"type":"string","default":"red"}`, `,"shape":{"type":"string","default":"round"}`
	apply(partsCRD(size))
	t.Cleanup(func() { _, _ = cluster.Kubectl(context.WithoutCancel(ctx), "delete", "crd", "parts.forms.example.com") })
	awaitKind(t, cluster, "parts.forms.example.com")
	for _, name := range []string{"one", "two", "three"} {
		apply(fmt.Sprintf(`{"apiVersion":"forms.example.com/v1","kind":"Part","metadata":{"name":%q,"namespace":"default"},"spec":{"size":1}}`, name))
	}

	path := filepath.Join(dir, "journal.db")
	daemon := func() *process { return start(t, cluster, "run", "parts", "-A", "--journal", path) }
	// until waits until the log, including quiet changes, has three lines that match.
	until := func(line string) {
		t.Helper()
		began, re := time.Now(), regexp.MustCompile("(?m)"+line)
		for n := 0; n != 3; pause() {
			out := logged(t, path, "--noise")
			if n = len(re.FindAllString(out, -1)); time.Since(began) > patience {
				t.Fatalf("%d lines match %q after %v, want 3:\n%s", n, line, patience, out)
			}
		}
		t.Logf("%q after %v", line, time.Since(began).Round(100*time.Millisecond))
	}
	d := daemon()
	d.wait(t, d.err, "msg=recording")
	apply(partsCRD(size + color))
	until(`^ +spec\.color: \+ red$`)
	d.interrupt(t)
	apply(partsCRD(size + color + shape))
	d = daemon()
	until(`^ +spec\.shape: \+ round$`)
	d.interrupt(t)

	all := logged(t, path, "--noise")
	if n := strings.Count(all, "is served in another form"); n != 6 {
		t.Errorf("%d conversions of 3 objects, want 6:\n%s", n, all)
	}
	if strings.Contains(all, "an audit found") {
		t.Errorf("something was missed:\n%s", all)
	}
	if out := logged(t, path); strings.Contains(out, "part/") { // the server ends watches of the kind, so there may be gaps
		t.Errorf("conversions are not quiet:\n%s", out)
	}
	lastStates(t, path, 3, `"color":"red"`, `"shape":"round"`)
}

// logged returns the output of tattler log.
func logged(t *testing.T, path string, args ...string) string {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd := exec.Command(tattler(t), append([]string{"log", "parts", "--limit", "0", "--journal", path}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), "TZ=UTC")
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String() + stderr.String()
}

// lastStates checks that the last states of parts contain the texts.
func lastStates(t *testing.T, path string, want int, texts ...string) {
	t.Helper()
	j, err := journal.Open(t.Context(), path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	n := 0
	for o, err := range j.Objects(t.Context(), journal.Stream{GroupResource: "parts.forms.example.com"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		for _, text := range texts {
			if !bytes.Contains(o.JSON, []byte(text)) {
				t.Errorf("the last state of %s has no %s: %s", o.Name, text, o.JSON)
			}
		}
	}
	if n != want {
		t.Errorf("%d states, want %d", n, want)
	}
}
