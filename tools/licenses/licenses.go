// Package licenses collects and checks the licences of what a program links: its modules, the standard library, and
// files of others in this repository.
//
// It reads the module cache and recognizes licences by their wording. It is a guard against mistakes, not legal advice:
// a text that it does not recognize is an error, to be looked at by a person.
package licenses

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const ours = "github.com/tattler-dev/tattler"

// Part is something that a program links and that others wrote.
type Part struct {
	Name    string // a module's path
	Version string
	Texts   []File // sorted by name
}

// File is a licence file, or a notice that must go with it.
type File struct {
	Name string // relative to the part, with slashes
	Text string
	IDs  []string // the recognized licences, as SPDX names them, sorted; nil for a notice
}

// IDs returns the licences of all of a part's files, sorted.
func (p Part) IDs() []string {
	all := map[string]bool{}
	for _, f := range p.Texts {
		for _, id := range f.IDs {
			all[id] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// listed is a package in the output of `go list -json`.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version, Dir string }
	}
}

// Collect returns the parts that a package links on any of the platforms ("linux/amd64"), sorted by name. The package is
// named as in the go command, which runs in dir. Modules of this repository are left out.
func Collect(ctx context.Context, dir, pkg string, platforms []string) ([]Part, error) {
	home := ""
	modules := map[string]*Part{}
	files := map[string]map[string]string{} // by part and name
	add := func(name, version, root, from string) error {
		if modules[name] == nil {
			modules[name], files[name] = &Part{Name: name, Version: version}, map[string]string{}
		}
		return readUp(root, from, files[name])
	}
	for _, platform := range platforms {
		packages, err := list(ctx, dir, pkg, platform)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			m := p.Module
			switch {
			case p.Standard || m == nil:
				continue
			case m.Main, m.Replace != nil && m.Replace.Version == "": // of this repository
				if m.Path == ours {
					home = m.Dir
				}
				continue
			case m.Replace != nil:
				m.Path, m.Version, m.Dir = m.Replace.Path, m.Replace.Version, m.Replace.Dir
			}
			if err := add(m.Path, m.Version, m.Dir, p.Dir); err != nil {
				return nil, err
			}
		}
	}
	if err := addStandard(ctx, dir, add); err != nil {
		return nil, err
	}
	var parts []Part
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		part := *modules[name]
		for _, file := range slices.Sorted(maps.Keys(files[name])) {
			f := File{Name: file, Text: files[name][file]}
			if !isNotice(file) {
				f.IDs = Recognize(f.Text)
			}
			part.Texts = append(part.Texts, f)
		}
		parts = append(parts, part)
	}
	return appendCopied(parts, home)
}

// addStandard adds the standard library.
func addStandard(ctx context.Context, dir string, add func(name, version, root, from string) error) error {
	cmd := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("find the Go installation: %w", err)
	}
	fields := strings.Fields(string(out))
	if len(fields) != 2 {
		return fmt.Errorf("find the Go installation: go env prints %q", out)
	}
	return add("the Go standard library", fields[1], fields[0], fields[0])
}

func list(ctx context.Context, dir, pkg, platform string) ([]listed, error) {
	system, arch, _ := strings.Cut(platform, "/")
	cmd := exec.CommandContext(ctx, "go", "list", "-mod=readonly", "-deps", "-json=Dir,Standard,Module", pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of %s: %w\n%s", pkg, err, &stderr)
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		all = append(all, p)
	}
}

// readUp reads the licence files of a directory and of those above it, up to the module's root. Vendored code has its
// licence beside it.
func readUp(root, dir string, into map[string]string) error {
	if root == "" {
		return errors.New("a module is not in the module cache: run `go mod download`")
	}
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("list a module's files: %w", err)
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !isLicense(e.Name()) && !isNotice(e.Name()) {
				continue
			}
			path := filepath.Join(dir, e.Name())
			name, err := filepath.Rel(root, path)
			if err != nil {
				return fmt.Errorf("find a licence's module: %w", err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("read a licence: %w", err)
			}
			into[filepath.ToSlash(name)] = strings.ReplaceAll(string(text), "\r\n", "\n")
		}
		if dir == root || len(dir) <= len(root) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// isLicense reports whether a file's name is that of a licence: LICENSE, LICENSE.txt, LICENSE-MIT, COPYING and others; edl-v10 is Eclipse's.
func isLicense(name string) bool {
	return begins(name, "license", "licence", "copying", "unlicense", "edl")
}

// isNotice reports whether a file has to go with a licence, but is not one.
func isNotice(name string) bool { return begins(filepath.Base(name), "notice", "patents") }

func begins(name string, words ...string) bool {
	stem, rest := strings.ToLower(name), ""
	if i := strings.IndexAny(stem, ".-_"); i >= 0 {
		stem, rest = stem[:i], stem[i:]
	}
	return slices.Contains(words, stem) && !strings.HasSuffix(rest, ".go")
}

// Text returns a document with all the licences: what a program links, then each text once with the parts that it
// covers.
func Text(program string, parts []Part) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s contains the following software of others, under these licences.\n\n", program)
	covers := map[string][]string{}
	var order []string
	for _, p := range parts {
		fmt.Fprintf(&b, "%s %s: %s\n", p.Name, p.Version, strings.Join(p.IDs(), ", "))
		for _, f := range p.Texts {
			text := strings.TrimSpace(f.Text)
			if covers[text] == nil {
				order = append(order, text)
			}
			covers[text] = append(covers[text], p.Name+" ("+f.Name+")")
		}
	}
	slices.SortStableFunc(order, func(x, y string) int { return cmp.Compare(covers[x][0], covers[y][0]) })
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 72), strings.Join(covers[text], "\n"), text)
	}
	return b.Bytes()
}

// appendCopied adds the code of others in our main module, which is in the directory home.
func appendCopied(parts []Part, home string) ([]Part, error) {
	for _, c := range copied {
		text, err := os.ReadFile(filepath.Join(home, filepath.FromSlash(c.license)))
		if err != nil {
			return nil, fmt.Errorf("read the licence of %s: %w", c.name, err)
		}
		parts = append(parts, Part{Name: c.name, Version: c.version, Texts: []File{{Name: "LICENSE", Text: string(text), IDs: Recognize(string(text))}}})
	}
	return parts, nil
}
