// Package release makes the files of a release: archives of the programs for each platform, their bills of materials,
// a krew manifest and checksums.
//
// Everything is built from a copy of the files that git lists, in a directory of its own, so that nothing else on the
// machine gets in. The same commit, Go version and [Options] make the same bytes on every machine. Programs are
// compiled without cgo.
package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/tools/licenses"
)

// Platform is an operating system and an architecture, as Go names them.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Platforms are those that are released.
var Platforms = []Platform{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// program is a released command: its module's directory in the tree, and its package there.
type program struct{ name, dir, pkg string }

var programs = []program{
	{"tattler", ".", "./cmd/tattler"},
	{"tattler-cloud", "cloud", "./cmd/tattler-cloud"},
}

// Options say what to release. Repository and Out are required; the zero value of the others releases every program
// for every platform from a clean work tree.
type Options struct {
	Repository string     // the root of a git work tree
	Out        string     // the directory to write; without Replace, it must not exist, or be empty
	Platforms  []Platform // nil: all of [Platforms]
	Programs   []string   // nil: all
	Version    string     // "": from git, see [Source]
	URL        string     // where the archives are published, for the krew manifest; "": on GitHub, below the version's tag
	Dirty      bool       // accept uncommitted changes, and release them
	Replace    bool       // replace the files of an earlier release in Out, once this one may begin
	Cache      string     // the Go build cache to use; "": the user's
	Log        io.Writer  // progress; nil: discarded
}

// Run makes a release. If it fails, Out may contain some of its files.
func Run(ctx context.Context, o Options) (err error) {
	r, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()

	if err := copyTree(ctx, o.Repository, r.tree()); err != nil {
		return err
	}
	for _, p := range r.programs {
		notices, err := r.notices(ctx, p)
		if err != nil {
			return err
		}
		for _, on := range r.o.Platforms {
			fmt.Fprintf(r.o.Log, "%s %s for %s\n", p.name, r.source.Version, on)
			if err := r.archive(ctx, p, on, notices); err != nil {
				return fmt.Errorf("release %s for %s: %w", p.name, on, err)
			}
		}
	}
	if err := r.krew(); err != nil {
		return err
	}
	return writeChecksums(r.o.Out)
}

// run is one release being made.
type run struct {
	o        Options
	programs []program
	source   Source
	work     string // a temporary directory
	sbomTool string // the path of cyclonedx-gomod, once built
}

func (r *run) tree() string { return filepath.Join(r.work, "tree") }

// prepare fills in the options and makes the directories.
func prepare(ctx context.Context, o Options) (*run, error) {
	r := &run{o: o}
	if r.o.Log == nil {
		r.o.Log = io.Discard
	}
	if r.o.Platforms == nil {
		r.o.Platforms = Platforms
	}
	for _, p := range programs {
		if o.Programs == nil || slices.Contains(o.Programs, p.name) {
			r.programs = append(r.programs, p)
		}
	}
	for _, name := range o.Programs {
		if !slices.ContainsFunc(programs, func(p program) bool { return p.name == name }) {
			return nil, fmt.Errorf("unknown program %q: known are tattler and tattler-cloud", name)
		}
	}
	var err error
	if r.source, err = Describe(ctx, o.Repository); err != nil {
		return nil, err
	}
	if r.source.Dirty && !o.Dirty {
		return nil, fmt.Errorf("the work tree has uncommitted changes, which a release must not have: %s; commit them, or release them with -dirty", r.source.Changed)
	}
	if o.Version != "" {
		r.source.Version = o.Version
	}
	if err := checkVersion(r.source.Version); err != nil {
		return nil, err
	}
	if r.o.URL == "" {
		r.o.URL = "https://github.com/tattler-dev/tattler/releases/download/" + r.source.Version
	}
	r.o.URL = strings.TrimSuffix(r.o.URL, "/")
	if err := emptyDir(o.Out, o.Replace); err != nil {
		return nil, err
	}
	if r.work, err = os.MkdirTemp("", "tattler-release-"); err != nil {
		return nil, fmt.Errorf("make a directory for the build: %w", err)
	}
	return r, nil
}

// emptyDir makes a directory, or checks that it is empty. With replace, it removes the files of a release, unless others are
// there.
func emptyDir(dir string, replace bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of the release: %w", err)
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil:
		return fmt.Errorf("read the directory of the release: %w", err)
	case len(entries) > 0 && !replace:
		return fmt.Errorf("%s is not empty: remove it, or name another directory", dir)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !released(e.Name()) {
			return fmt.Errorf("%s contains %s, which is not a file of a release: remove it, or name another directory", dir, e.Name())
		}
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("remove the earlier release: %w", err)
		}
	}
	return nil
}

// released reports whether a release has files of that name.
func released(name string) bool {
	return name == "checksums.txt" || name == "krew-tattler.yaml" || strings.HasPrefix(name, "tattler_") || strings.HasPrefix(name, "tattler-cloud_")
}

// notices returns the licences of what a program links on any of the platforms, and fails if one is not allowed.
func (r *run) notices(ctx context.Context, p program) ([]byte, error) {
	var on []string
	for _, platform := range r.o.Platforms {
		on = append(on, platform.String())
	}
	parts, err := licenses.Collect(ctx, filepath.Join(r.tree(), p.dir), p.pkg, on)
	if err != nil {
		return nil, err
	}
	if err := licenses.Check(parts); err != nil {
		return nil, err
	}
	return licenses.Text(p.name, parts), nil
}

// archive builds a program for a platform and writes its archive and its bill of materials.
func (r *run) archive(ctx context.Context, p program, on Platform, notices []byte) error {
	binary := filepath.Join(r.work, p.name+on.exe())
	if err := r.build(ctx, p, on, binary); err != nil {
		return err
	}
	files := []member{{name: p.name + on.exe(), disk: binary, executable: true}}
	for _, name := range []string{"LICENSE", "README.md"} {
		files = append(files, member{name: name, disk: filepath.Join(r.tree(), name)})
	}
	files = append(files, member{name: noticesName, text: notices})
	out := filepath.Join(r.o.Out, archiveName(p.name, r.source.Version, on))
	if err := pack(out, files, r.source.Time); err != nil {
		return err
	}
	return r.sbom(ctx, binary, out+".sbom.json")
}

// noticesName is the file with the licences of what a program links.
const noticesName = "THIRD-PARTY-LICENSES.txt"

func (p Platform) exe() string {
	if p.OS == "windows" {
		return ".exe"
	}
	return ""
}

// archiveName is the file name of a program's archive: zip on Windows, where every machine can open that.
func archiveName(program, version string, on Platform) string {
	suffix := ".tar.gz"
	if on.OS == "windows" {
		suffix = ".zip"
	}
	return fmt.Sprintf("%s_%s_%s_%s%s", program, version, on.OS, on.Arch, suffix)
}
