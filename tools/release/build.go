package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const stampedPackage = "github.com/tattler-dev/tattler/internal/buildinfo."

// build compiles a program for a platform.
func (r *run) build(ctx context.Context, p program, on Platform, out string) error {
	stamps := []string{
		"-s", "-w", // no symbols: a panic still names functions and lines
		"-X", stampedPackage + "stamped=" + r.source.Version,
		"-X", stampedPackage + "commit=" + r.source.Commit,
		"-X", stampedPackage + "committed=" + r.source.Time.Format(time.RFC3339),
	}
	cmd := r.goCommand(ctx, filepath.Join(r.tree(), p.dir),
		"build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", strings.Join(stamps, " "), "-o", out, p.pkg)
	cmd.Env = append(cmd.Env, "GOOS="+on.OS, "GOARCH="+on.Arch)
	return output(cmd)
}

// goCommand returns a go command that no setting of the user changes, except where modules come from.
func (r *run) goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "GOEXPERIMENT=", "GOFIPS140=off", "GODEBUG=",
		"GOAMD64=v1", "GOARM64=v8.0")
	if r.o.Cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+r.o.Cache)
	}
	return cmd
}

// sbom writes the bill of materials of a binary in CycloneDX's JSON: the modules that it links, with their checksums.
func (r *run) sbom(ctx context.Context, binary, out string) error {
	if r.sbomTool == "" {
		tool := filepath.Join(r.work, "cyclonedx-gomod"+hostExe())
		if err := output(r.goCommand(ctx, filepath.Join(r.tree(), "tools"), "build", "-mod=readonly", "-o", tool, "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod")); err != nil {
			return err
		}
		r.sbomTool = tool
	}
	serial, err := serialOf(binary)
	if err != nil {
		return err
	}
	// A relative path, since the tool writes what it is given.
	cmd := exec.CommandContext(ctx, r.sbomTool, "bin", "-json", "-std", "-notimestamp", "-serial", serial,
		"-version", r.source.Version, "-output", out, filepath.Base(binary))
	cmd.Dir = filepath.Dir(binary)
	if err := output(cmd); err != nil {
		return err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return fmt.Errorf("read the bill of materials: %w", err)
	}
	if text, err = nameRoot(text, r.source.Version); err != nil {
		return err
	}
	if err := os.WriteFile(out, text, 0o644); err != nil {
		return fmt.Errorf("write the bill of materials: %w", err)
	}
	return nil
}

// nameRoot names the root module in a bill of materials of tattler-cloud. Its go.mod replaces that module by a directory,
// which the tool takes for a name.
func nameRoot(text []byte, version string) ([]byte, error) {
	const root = "github.com/tattler-dev/tattler"
	named := strings.NewReplacer(
		"pkg:golang/../@(devel)", "pkg:golang/"+root+"@"+version,
		`"name": "../",`, `"name": "`+root+`",`,
		`"version": "(devel)"`, `"version": "`+version+`"`,
	).Replace(string(text))
	if strings.Contains(named, "../") || strings.Contains(named, "(devel)") {
		return nil, errors.New("the bill of materials names a directory: cyclonedx-gomod writes another form than before")
	}
	return []byte(named), nil
}

// serialOf derives a UUID of version 8 (RFC 9562) from a file, where a random one would differ in each build.
func serialOf(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the binary: %w", err)
	}
	sum := sha256.Sum256(data)
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]), nil
}

// output runs a command, whose output becomes part of the error if it fails.
func output(cmd *exec.Cmd) error {
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path)+" "+cmd.Args[1], err, bytes.TrimSpace(text.Bytes()))
	}
	return nil
}
