package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestPluginCompletion: the generated program passes kubectl's words on, each as it is, and prints what it gets.
func TestPluginCompletion(t *testing.T) {
	code, script, errs := tattler(t.Context(), "tattler", "completion", "kubectl")
	if code != exitDone || errs != "" || script != pluginCompletion(runtime.GOOS, "tattler") {
		t.Fatalf("exit code %d, stdout %q, stderr %q", code, script, errs)
	}
	if cmd := pluginCompletion("windows", "tattler"); !strings.HasPrefix(cmd, "@echo off\r\nkubectl-tattler __complete ") {
		t.Errorf("on Windows: %q", cmd)
	}
	if runtime.GOOS == "windows" {
		return
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kubectl_complete-tattler": script,
		"kubectl-tattler":          "#!/bin/sh\nprintf '<%s>' \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl_complete-tattler"), "log", "-l", "a in (b, c)", "")
	cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "<__complete><log><-l><a in (b, c)><>" {
		t.Errorf("%v, %q", err, out)
	}
}

// TestBashCompletion completes a command line in bash, with the generated script.
func TestBashCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		if os.Getenv("CI") == "" {
			t.Skip("bash is not installed")
		}
		t.Fatal(err)
	}
	_, script, _ := tattler(t.Context(), "tattler", "completion", "bash")
	const session = `
compopt() { :; } # outside a completion, bash refuses it
# As the package bash-completion does.
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}") cword=$COMP_CWORD cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}; }
tattler() { [ "$1" = __complete ] || return; printf '%s\n' "versatile	seen $2" version :4; }
COMP_WORDS=(tattler vers) COMP_CWORD=1 COMP_LINE="tattler vers" COMP_POINT=12 COMP_TYPE=63
__start_tattler
printf '%s\n' "${COMPREPLY[@]}"
`
	cmd := exec.CommandContext(t.Context(), bash, "--norc", "--noprofile", "-c", script+session)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "versatile") || !strings.Contains(string(out), "\nversion") {
		t.Errorf("%v, %q", err, out)
	}
}
