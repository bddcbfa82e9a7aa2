package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSecurityDocs runs the commands of docs/security.md with its rules, as one reader would: first those for a
// running daemon, then those for which it must be stopped.
func TestSecurityDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	var commands []string
	for _, c := range regexp.MustCompile("`(tattler [^`]*)`").FindAllSubmatch(text, -1) {
		if command := string(c[1]); !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
	}
	if rules == nil || len(commands) < 8 {
		t.Fatalf("docs/security.md has rules %q and commands %q", rules, commands)
	}
	u := newUser(t, nil)
	file := "apiVersion: tattler.dev/v1alpha1\nkind: Config\nwatch:\n- resources: {include: [configmaps]}\n" + string(rules[1])
	if err := os.WriteFile(filepath.Join(u.dir, "tattler.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	d := u.start(t, "tattler run -c tattler.yaml")
	d.wait(t, d.err, "msg=recording")
	d.wait(t, d.err, "widgets.example.com")
	var later []string
	for _, command := range commands {
		switch {
		case command == "tattler run": // it is running
		case command == "tattler watch":
			w := u.start(t, command)
			w.wait(t, w.err, "Waiting for changes")
			w.interrupt(t)
		case command == "tattler ui":
			ui := u.start(t, command)
			ui.wait(t, ui.out, "http://127.0.0.1:")
			ui.interrupt(t)
		case command == "tattler log -f":
			following := u.start(t, command)
			if _, err := cluster.Kubectl(t.Context(), "create", "configmap", "followed", "--from-literal=a=b"); err != nil {
				t.Fatal(err)
			}
			following.wait(t, following.out, "cm/followed")
			following.interrupt(t)
			if _, err := cluster.Kubectl(t.Context(), "delete", "configmap", "followed"); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(command, "tattler journal"):
			later = append(later, command)
		default:
			u.output(t, command)
		}
	}
	if out := string(u.output(t, "tattler status")); !strings.Contains(out, "widgets.example.com") {
		t.Errorf("the pending rule is not in the status:\n%s", out)
	}
	d.interrupt(t)
	for _, command := range later {
		u.output(t, command)
	}
}
