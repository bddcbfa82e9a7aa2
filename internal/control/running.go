package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Commands that name no journal find that of the only running daemon: each daemon records its journal in
// $XDG_STATE_HOME/tattler/running while it serves its socket (Announce). The socket shows whether a record is true: a
// killed daemon leaves one behind, which the next daemon removes.

// Announce records, in a directory of the user, that a daemon serves the socket beside a journal, for commands
// that do not name a journal; see Running. withdraw removes the record. Announce also removes records of killed
// daemons.
func Announce(ctx context.Context, dir, journal string) (withdraw func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("announce the daemon: %w", err)
	}
	for note, of := range notes(dir) {
		if !Recording(ctx, of) { // a daemon that is slow to answer keeps its record
			_ = os.Remove(note)
		}
	}
	sum := sha256.Sum256([]byte(journal))
	note := filepath.Join(dir, hex.EncodeToString(sum[:8]))
	if err := os.WriteFile(note, []byte(journal), 0o600); err != nil {
		return nil, fmt.Errorf("announce the daemon: %w", err)
	}
	return func() error {
		if err := os.Remove(note); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("withdraw the daemon's announcement: %w", err)
		}
		return nil
	}, nil
}

// Running returns the journals of the announced daemons that serve their sockets, sorted.
func Running(ctx context.Context, dir string) (journals []string) {
	for _, journal := range notes(dir) {
		if serves(ctx, journal) {
			journals = append(journals, journal)
		}
	}
	slices.Sort(journals)
	return journals
}

// notes maps the record files of a directory to the journals that they name.
func notes(dir string) map[string]string {
	all := map[string]string{}
	entries, _ := os.ReadDir(dir) // without a directory there are no records
	for _, e := range entries {
		note := filepath.Join(dir, e.Name())
		if journal, err := os.ReadFile(note); err == nil && filepath.IsAbs(string(journal)) {
			all[note] = string(journal)
		}
	}
	return all
}

// serves reports whether a process accepts connections at the socket beside a journal.
func serves(ctx context.Context, journal string) bool { return probe(ctx, journal) == nil }

// Recording reports whether a daemon serves the socket beside a journal, as far as this user can see; another
// user's daemon counts.
func Recording(ctx context.Context, journal string) bool { return !notServed(probe(ctx, journal)) }

// probeTime bounds a connection to a socket. The system makes it at once, even if the daemon hangs, so only a machine that
// hardly runs this process takes long.
const probeTime = 10 * time.Second

// probe connects to the socket beside a journal.
func probe(ctx context.Context, journal string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	c, err := dial(ctx, SocketPath(journal))
	if err != nil {
		return err
	}
	_ = c.Close() // nothing was sent
	return nil
}
