package daemon

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// keyBytes is the length of a redaction key.
const keyBytes = 32

// LoadKey reads the key that hidden values are hashed with, and makes one where there is no file. It
// must not be lost, or every hidden value seems to change once; and it belongs on another volume than
// the journal, or who has that volume can try values. The file is the owner's alone.
func LoadKey(path string) ([]byte, error) {
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeKey(path); err != nil && !errors.Is(err, fs.ErrExist) { // another process was quicker
		return nil, fmt.Errorf("make redaction key: %w", err)
	}
	return readKey(path)
}

func readKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read redaction key: %w", err)
	}
	if mode := info.Mode().Perm(); !private(info) {
		return nil, fmt.Errorf("read redaction key: %s may be read by others (mode %04o): chmod 600 it", path, mode)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read redaction key: %w", err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("read redaction key: %s is not %d bytes in base64: restore it, or remove it to have a new one made", path, keyBytes)
	}
	return key, nil
}

// makeKey writes a new key. A crash leaves the whole file or none.
func makeKey(path string) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".key-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	key := make([]byte, keyBytes)
	rand.Read(key)
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(key) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path) // unlike a rename, this replaces nothing
}
