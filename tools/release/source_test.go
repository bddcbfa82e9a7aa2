package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDescribe makes a history and reads the version of each of its commits.
func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
			"GIT_AUTHOR_DATE=2026-11-24T10:00:00+02:00", "GIT_COMMITTER_DATE=2026-11-24T10:00:00+02:00")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	describe := func(why, want string) {
		t.Helper()
		s, err := Describe(t.Context(), dir)
		want = strings.ReplaceAll(want, "HASH", s.Commit[:min(12, len(s.Commit))])
		if err != nil || s.Version != want {
			t.Errorf("%s: %q, %v; want %q", why, s.Version, err, want)
		}
		if err := checkVersion(s.Version); err != nil {
			t.Errorf("%s: %v", why, err)
		}
	}
	commit := func() { t.Helper(); run("commit", "--quiet", "--allow-empty", "-m", "x") }

	run("init", "--quiet")
	commit()
	describe("no tag", "v0.0.0-20261124080000-HASH")
	run("tag", "v0.1.0")
	run("tag", "vulcan") // no version
	run("tag", "v0.2")   // not as Go modules have it
	describe("a tag", "v0.1.0")
	run("tag", "v0.1.1-rc.1")
	describe("two tags: the newer one", "v0.1.1-rc.1")
	commit()
	describe("after a candidate", "v0.1.1-rc.1.0.20261124080000-HASH")
	run("tag", "v0.1.1")
	commit()
	describe("after a tag", "v0.1.2-0.20261124080000-HASH")
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	describe("an uncommitted file", "v0.1.2-0.20261124080000-HASH+dirty")
	if err := Run(t.Context(), Options{Repository: dir, Out: filepath.Join(t.TempDir(), "dist")}); err == nil || !strings.Contains(err.Error(), "uncommitted changes") || !strings.Contains(err.Error(), "new") {
		t.Errorf("a release of it: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{Out: full}, "is not empty"},
		{Options{Programs: []string{"tatler"}}, `unknown program "tatler"`},
		{Options{Version: "1.2.3"}, `invalid version "1.2.3"`},
		{Options{Version: "v1.2.3/../x"}, "invalid version"},
		{Options{Repository: t.TempDir()}, "not a git repository"},
	} {
		if tc.o.Repository == "" {
			tc.o.Repository = repository
		}
		if tc.o.Out == "" {
			tc.o.Out = t.TempDir()
		}
		tc.o.Dirty = true
		if err := Run(t.Context(), tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.o, err, tc.want)
		}
	}
}

// TestDifferences: a comparison of releases must find what it is for.
func TestDifferences(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{a + "/same": "1", b + "/same": "1", a + "/other": "1", b + "/other": "2", a + "/gone": "1", b + "/new": "1"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Differences(a, b)
	if err != nil || len(got) != 3 || !strings.HasSuffix(got[0], "then missing") || !strings.HasPrefix(got[1], "new: missing, then") || !strings.HasPrefix(got[2], "other: ") {
		t.Errorf("%v, %q", err, got)
	}
}
