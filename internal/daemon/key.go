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

	"github.com/tattler-dev/tattler/internal/syncdir"
)

// keyBytes is the length of a redaction key.
const keyBytes = 32

// LoadKey reads the key for hashing redacted values, and creates one if there is no file. If the key is lost,
// every redacted value seems to change once. Keep it on another volume than the journal: with both, values can
// be tried. Only the owner may read the file.
func LoadKey(path string) ([]byte, error) { return loadKey(path, syncdir.Sync) }

// loadKey is LoadKey with the function that makes directories durable.
func loadKey(path string, sync func(dir string) error) ([]byte, error) {
	key, err := ReadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeKey(path, sync); err != nil && !errors.Is(err, fs.ErrExist) { // another process was faster
		return nil, fmt.Errorf("create redaction key: %w", err)
	}
	return ReadKey(path)
}

// ReadKey is LoadKey without creating a key: the error is fs.ErrNotExist if there is no file.
func ReadKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read redaction key: %w", err)
	}
	if mode := info.Mode().Perm(); !private(info) {
		return nil, fmt.Errorf("read redaction key: %s is readable by others (mode %04o): chmod 600 it", path, mode)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read redaction key: %w", err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("read redaction key: %s is not %d bytes in base64: restore it, or create another: head -c %d /dev/urandom | base64", path, keyBytes, keyBytes)
	}
	return key, nil
}

// makeKey writes a new key. A crash leaves the complete file or none; once it returns, the file and its new
// directories survive a crash of the machine.
func makeKey(path string, sync func(dir string) error) (err error) {
	dir := filepath.Dir(path)
	there := dir // the directory that exists
	for !exists(there) && there != filepath.Dir(there) {
		there = filepath.Dir(there)
	}
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
	if err := os.Link(f.Name(), path); err != nil { // unlike a rename, this does not replace a file
		return err
	}
	for ; ; dir = filepath.Dir(dir) {
		if err := sync(dir); err != nil || dir == there {
			return err
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
