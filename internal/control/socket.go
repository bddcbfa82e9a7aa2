package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// SocketPath is where the daemon that writes a journal is asked: beside it. A symbolic link to the journal has the
// file's socket.
func SocketPath(journal string) string {
	if info, err := os.Lstat(journal); err == nil && info.Mode().Type() == os.ModeSymlink {
		if file, err := filepath.EvalSymlinks(journal); err == nil {
			journal = file
		}
	}
	return journal + ".sock"
}

// maxAddress is how long the address of a socket may be on every system that has them.
//
// Source: sun_path in sys/un.h: 104 bytes on macOS and the BSDs, 108 on Linux, the last one a zero.
const maxAddress = 103

// Listen opens the socket beside a journal, for its owner alone. One that a killed daemon has left is
// replaced: only who has the journal's lock may call this, and it calls Remove when it serves no more.
func Listen(journal string) (net.Listener, error) {
	l, err := listen(SocketPath(journal))
	if err != nil {
		return nil, fmt.Errorf("open the socket beside the journal: %w", err)
	}
	return l, nil
}

func listen(path string) (net.Listener, error) {
	if fi, err := os.Lstat(path); err == nil && fi.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s is in the way: it is no socket", path)
	}
	// A socket is made in a directory that others cannot enter, and moved once its rights are set.
	room := path + ".new"
	if err := os.RemoveAll(room); err != nil {
		return nil, err
	}
	if err := os.Mkdir(room, 0o700); err != nil {
		return nil, err
	}
	defer os.RemoveAll(room)
	address, done := filepath.Join(room, "s"), func() {}
	if len(address) > maxAddress {
		link, remove, err := shortcut(room)
		if err != nil {
			return nil, err
		}
		address, done = filepath.Join(link, "s"), remove
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it would look for it under its first name
	made := filepath.Join(room, "s")
	err = os.Chmod(made, 0o600)
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Remove removes the socket beside a journal; there may be none.
func Remove(journal string) error {
	if err := os.Remove(SocketPath(journal)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket beside the journal: %w", err)
	}
	return nil
}

// shortcut makes a link to what has too long a path to be addressed, in a directory of its own, which
// remove removes.
func shortcut(to string) (link string, remove func(), err error) {
	room, err := os.MkdirTemp("", "tattler-")
	if err != nil {
		return "", nil, fmt.Errorf("%s is longer than the %d bytes that a socket's address can have, and there is no place for a link to it: %s; choose a shorter path for the journal",
			to, maxAddress, err.Error()) // not wrapped: it is not the socket that does not exist
	}
	link = filepath.Join(room, "l")
	if err := os.Symlink(to, link); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(room))
	}
	return link, func() { _ = os.RemoveAll(room) }, nil // what stays is an empty directory
}

// dial connects to a socket, whatever the length of its path.
func dial(ctx context.Context, path string) (net.Conn, error) {
	if len(path) > maxAddress {
		link, remove, err := shortcut(path)
		if err != nil {
			return nil, err
		}
		defer remove()
		path = link
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}
