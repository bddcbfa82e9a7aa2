package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// Source is what a release is made of.
type Source struct {
	// Version is the newest version tag if the commit has one. Otherwise it is the pseudo-version that `go install
	// …@COMMIT` would use: it sorts after the tag before the commit. With uncommitted changes, "+dirty" follows.
	Version string
	Commit  string    // the full hash
	Time    time.Time // the commit's, in UTC
	Dirty   bool      // there are uncommitted changes
	Changed string    // the first such file
}

// Describe reads a work tree's source from git.
func Describe(ctx context.Context, repository string) (Source, error) {
	head, err := git(ctx, repository, "log", "-1", "--format=%H %ct")
	if err != nil {
		return Source{}, err
	}
	var s Source
	var seconds int64
	if _, err := fmt.Sscan(head, &s.Commit, &seconds); err != nil {
		return Source{}, fmt.Errorf("read the commit %q: %w", head, err)
	}
	s.Time = time.Unix(seconds, 0).UTC()
	if s.Version, err = Tag(ctx, repository); err != nil {
		return Source{}, err
	}
	if s.Version == "" {
		older, err := git(ctx, repository, "tag", "--list", "v*", "--merged", "HEAD")
		if err != nil {
			return Source{}, err
		}
		tag := newest(older)
		major := semver.Major(tag)
		if major == "" {
			major = "v0"
		}
		s.Version = module.PseudoVersion(major, tag, s.Time, s.Commit[:12])
	}
	changes, err := git(ctx, repository, "status", "--porcelain")
	if first, _, _ := strings.Cut(changes, "\n"); first != "" {
		s.Dirty, s.Changed = true, strings.TrimSpace(first)
		s.Version += "+dirty"
	}
	return s, err
}

// Tag returns the newest version tag of the commit of a work tree; "" if it has none.
func Tag(ctx context.Context, repository string) (string, error) {
	tags, err := git(ctx, repository, "tag", "--list", "v*", "--points-at", "HEAD")
	return newest(tags), err
}

// newest returns the newest of some tags, one a line, that are versions of Go modules; "" without any.
func newest(tags string) (version string) {
	for _, tag := range strings.Fields(tags) {
		if semver.IsValid(tag) && semver.Canonical(tag) == tag && semver.Compare(tag, version) > 0 {
			version = tag
		}
	}
	return version
}

var versionForm = regexp.MustCompile(`^v[0-9A-Za-z.+-]+$`)

// checkVersion rejects what krew or a file name cannot have.
func checkVersion(version string) error {
	if !semver.IsValid(version) || !versionForm.MatchString(version) {
		return fmt.Errorf("invalid version %q: write it as v1.2.3 or v1.2.3-rc.1", version)
	}
	return nil
}

// copyTree copies the files that git lists, and new files that it does not ignore, to a new directory. Modes are
// normalized, since a umask must not change a release.
func copyTree(ctx context.Context, from, to string) error {
	list, err := git(ctx, from, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.Trim(list, "\x00"), "\x00") {
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return fmt.Errorf("copy the source: %w", err)
		}
	}
	return nil
}

func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil // deleted, but still in the index
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", from)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// git returns a command's output without the final newline.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
