package release

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// member is a file of an archive: on disk, or text.
type member struct {
	name, disk string
	text       []byte
	executable bool
}

func (m member) mode() os.FileMode {
	if m.executable {
		return 0o755
	}
	return 0o644
}

func (m member) read() ([]byte, error) {
	if m.disk == "" {
		return m.text, nil
	}
	return os.ReadFile(m.disk)
}

// pack writes an archive: zip if its name says so, otherwise tar.gz. Each member has the same time and no owner.
func pack(path string, files []member, at time.Time) (err error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	if strings.HasSuffix(path, ".zip") {
		return packZip(out, files, at)
	}
	return packTar(out, files, at)
}

func packTar(out io.Writer, files []member, at time.Time) error {
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(zipped)
	for _, m := range files {
		data, err := m.read()
		if err != nil {
			return err
		}
		header := &tar.Header{Name: m.name, Mode: int64(m.mode()), Size: int64(len(data)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), zipped.Close())
}

func packZip(out io.Writer, files []member, at time.Time) error {
	w := zip.NewWriter(out)
	for _, m := range files {
		data, err := m.read()
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: at}
		header.SetMode(m.mode())
		to, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := to.Write(data); err != nil {
			return err
		}
	}
	return w.Close()
}

// checksumsName is the file with the checksums of all others, in the form of sha256sum.
const checksumsName = "checksums.txt"

func writeChecksums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list the release: %w", err)
	}
	var b strings.Builder
	for _, e := range entries { // sorted by name
		sum, err := checksum(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, e.Name())
	}
	if err := os.WriteFile(filepath.Join(dir, checksumsName), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the checksums: %w", err)
	}
	return nil
}

// checksum returns the SHA-256 of a file, in hex.
func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the release: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// Differences compares two releases by their checksums and returns a line for each file that only one of them has, or
// that has different bytes.
func Differences(a, b string) ([]string, error) {
	sums := [2]map[string]string{}
	for i, dir := range []string{a, b} {
		sums[i] = map[string]string{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("list a release: %w", err)
		}
		for _, e := range entries {
			if sums[i][e.Name()], err = checksum(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	var out []string
	for _, name := range keys(sums[0], sums[1]) {
		if x, y := sums[0][name], sums[1][name]; x != y {
			out = append(out, fmt.Sprintf("%s: %s, then %s", name, cmp.Or(x, "missing"), cmp.Or(y, "missing")))
		}
	}
	return out, nil
}

func hostExe() string { return Platform{OS: runtime.GOOS}.exe() }
