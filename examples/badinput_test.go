package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ordinary are the arguments with which each example runs, but for addresses.
var ordinary = map[string][]string{
	"node-label-logger": {"--label", "pool=gpu"},
	"pod-by-ip":         {"--listen", "127.0.0.1:0"},
	"image-setter":      {"--image", "nginx:1.13"},
	"crd-audit":         {"--policies", "crd-audit/policies"},
	"change-bus":        {"--kinds", "configmaps"},
	"image-gate":        {"--configmap", "default/images", "--listen", "127.0.0.1:0"},
	"pod-restarter":     {"--reason", "CreateContainerConfigError"},
	"workqueue":         {"--namespace", "default"},
	"workqueue-by-hand": {"--namespace", "default"},
	"operator":          {"--directory", "operator/directory"},
}

// TestBadInput: what is wrong with the command line or with the cluster is one line, which says what to do.
func TestBadInput(t *testing.T) {
	t.Parallel()
	nobody := user(t, "nobody")
	garbled := filepath.Join(t.TempDir(), "garbled")
	if err := os.WriteFile(garbled, []byte("apiVersion: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for example, args := range ordinary {
		t.Run(example, func(t *testing.T) {
			if example == "operator" {
				operatorRights(t) // its kind must be there
			}
			t.Parallel()
			for _, tc := range []struct {
				why, kubeconfig string
				args            []string
				code            int
				want            []string
			}{
				{"no kubeconfig", "", args, 1, []string{example + ": no cluster is named", "KUBECONFIG", "make cluster"}},
				{"a file that is not there", "/nonexistent/file", args, 1, []string{example + ": no cluster is named", `"/nonexistent/file"`, "make cluster"}},
				{"no such file", "/nonexistent/file", append([]string{"--kubeconfig", "/nonexistent/file"}, args...), 1, []string{example + ": ", "/nonexistent/file"}},
				{"a broken file", garbled, args, 1, []string{example + ": read the kubeconfig: ", garbled}},
				{"an argument", cluster.Kubeconfig(), append(args, "what"), 2, []string{example + `: unexpected argument "what"`, "--help"}},
				{"an unknown flag", cluster.Kubeconfig(), append(args, "--nope"), 2, []string{example + ": flag provided but not defined: -nope; --help"}},
				{"no rights", nobody, args, 1, []string{example + ": ", "forbidden", "nobody", "manifest.yaml"}},
			} {
				line := fails(t, command(example, tc.kubeconfig, tc.args...), tc.code)
				for _, want := range tc.want {
					if !strings.Contains(line, want) {
						t.Errorf("%s: %q, want %q", tc.why, line, want)
					}
				}
			}
		})
	}
}

// TestComplete: each example has what a reader expects, is in TestBadInput, and is short. It takes the flags that its
// README gives it.
func TestComplete(t *testing.T) {
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) < len(ordinary) {
		t.Fatalf("%d examples, of which %d are run: %v", len(mains), len(ordinary), err)
	}
	for _, file := range mains {
		example := filepath.Dir(file)
		command := "go run ./" + example
		if _, err := os.Stat(filepath.Join(example, "go.mod")); err == nil {
			command = "go run ." // a module of its own has tests of its own
		} else if ordinary[example] == nil {
			t.Errorf("%s is not in TestBadInput", example)
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(code), "\n"); n > 150 {
			t.Errorf("%s has %d lines", file, n)
		}
		readme, err := os.ReadFile(filepath.Join(example, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"# " + example + "\n", command, "manifest.yaml", "_test.go"} {
			if !strings.Contains(string(readme), want) {
				t.Errorf("the README of %s has no %q", example, want)
			}
		}
		for _, m := range runs.FindAllStringSubmatch(string(readme), -1) {
			args := append(strings.Fields(m[2]), "--help") // unknown flags come first
			if out, err := exec.Command(filepath.Join(built, m[1]), args...).CombinedOutput(); err != nil {
				t.Errorf("the README of %s has %q: %v\n%s", example, m[0], err, out)
			}
		}
	}
}

// runs are the commands of a README that run an example, with its name and its arguments.
var runs = regexp.MustCompile(`(?m)^go run \./(\S+)([^&#\n]*)`)
