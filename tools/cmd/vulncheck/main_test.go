package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestUnreachable: without a database, a version is not released. Anything else goes on, and says that it was not checked.
func TestUnreachable(t *testing.T) {
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close() // its address refuses connections
	t.Setenv("GOVULNDB", away.URL)
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	check := func(why, want string, args ...string) {
		t.Helper()
		var log strings.Builder
		err := run(t.Context(), append(args, dir), &log)
		if want == "" && (err != nil || !strings.Contains(log.String(), "NOT checked for vulnerabilities: the database is not reachable: ")) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q\n%s", why, err, want, log.String())
		}
	}
	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "-m", "x")
	git("tag", "vulcan") // no version
	check("no version", "", "-release")
	git("tag", "v1.2.3")
	check("a version", "v1.2.3 cannot be released, because it was not checked for vulnerabilities: the database is not reachable: ", "-release")
	check("a version that is not being released", "")
	if err := run(t.Context(), nil, &strings.Builder{}); err == nil {
		t.Error("no directory is accepted")
	}
}
