package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const repository = "../.."

// TestTwice makes a release of one program for this machine from two copies of the repository: the bytes are the same,
// and they are what they say.
func TestTwice(t *testing.T) {
	here := Platform{runtime.GOOS, runtime.GOARCH}
	first := Options{Repository: repository, Out: filepath.Join(t.TempDir(), "dist"), Platforms: []Platform{here}, Programs: []string{"tattler"}, Version: "v1.2.3-test", Dirty: true}
	if err := Run(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	source, err := Describe(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("same bytes", func(t *testing.T) {
		second := first
		second.Repository, second.Out = elsewhere(t), filepath.Join(t.TempDir(), "dist")
		if err := Run(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		differ, err := Differences(first.Out, second.Out)
		if err != nil || len(differ) > 0 {
			t.Errorf("%v\n%s", err, strings.Join(differ, "\n"))
		}
	})

	archive := archiveName("tattler", first.Version, here)
	if got, want := names(t, first.Out), []string{checksumsName, krewName, archive, archive + ".sbom.json"}; !slices.Equal(got, want) {
		t.Fatalf("it has %q, want %q", got, want)
	}
	if here.OS == "windows" {
		return // a zip file
	}
	files := unpack(t, filepath.Join(first.Out, archive), source.Time)
	for name, want := range map[string]string{"LICENSE": "Apache License", "README.md": "# Tattler", noticesName: "k8s.io/client-go v"} {
		if !strings.Contains(string(files[name]), want) {
			t.Errorf("%s has no %q", name, want)
		}
	}
	binary := filepath.Join(t.TempDir(), "tattler")
	if err := os.WriteFile(binary, files["tattler"], 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary, "version").CombinedOutput()
	want := "tattler v1.2.3-test (commit " + source.Commit[:12] + ", " + source.Time.Format(time.DateOnly) + ") " + runtime.Version() + " " + here.String() + "\n"
	if err != nil || string(out) != want {
		t.Errorf("tattler version: %v, %q, want %q", err, out, want)
	}
	if bytes.Contains(files["tattler"], []byte(os.TempDir()+"/tattler-release-")) {
		t.Error("the program contains the path where it was built")
	}
	checkSBOM(t, filepath.Join(first.Out, archive+".sbom.json"), files["tattler"])
}

// elsewhere clones the repository, with the uncommitted changes, to another place.
func elsewhere(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a", "clone")
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--no-checkout", repository, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := copyTree(t.Context(), repository, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// unpack returns the files of an archive, which must not say who made it, or when.
func unpack(t *testing.T, path string, at time.Time) map[string][]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname+h.Gname != "" || !h.ModTime.Equal(at) {
			t.Errorf("%s belongs to %d:%d (%s:%s) and is of %s", h.Name, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime)
		}
		if want := map[bool]int64{true: 0o755, false: 0o644}[h.Name == "tattler"]; h.Mode != want {
			t.Errorf("%s has mode %o, want %o", h.Name, h.Mode, want)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// checkSBOM compares a bill of materials with the modules that Go records in the binary.
func checkSBOM(t *testing.T, path string, binary []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		SpecVersion, SerialNumber string
		Metadata                  struct {
			Timestamp string
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(data, &bom); err != nil {
		t.Fatal(err)
	}
	if bom.SpecVersion == "" || bom.SerialNumber == "" || bom.Metadata.Timestamp != "" || bom.Metadata.Component.Version != "v1.2.3-test" {
		t.Errorf("specVersion %q, serialNumber %q, timestamp %q, version %q", bom.SpecVersion, bom.SerialNumber, bom.Metadata.Timestamp, bom.Metadata.Component.Version)
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"std " + info.GoVersion}
	for _, m := range info.Deps {
		want = append(want, m.Path+" "+m.Version)
	}
	var got []string
	for _, c := range bom.Components {
		got = append(got, c.Name+" "+c.Version)
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("it lists\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
