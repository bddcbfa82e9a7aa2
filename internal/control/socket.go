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

// SocketPath returns the socket of the daemon that writes a journal: it is beside the file. A symbolic link to
// the journal gives the file's socket.
func SocketPath(journal string) string {
	if info, err := os.Lstat(journal); err == nil && info.Mode().Type() == os.ModeSymlink {
		if file, err := filepath.EvalSymlinks(journal); err == nil {
			journal = file
		}
	}
	return journal + ".sock"
}

// maxAddress is the length of a socket address, in bytes, that every system allows.
//
// Source: sun_path in sys/un.h: 104 bytes on macOS and the BSDs, 108 on Linux, the last one a zero.
const maxAddress = 103

// Listen opens the socket beside a journal, accessible only to its owner. It replaces one that a killed daemon
// left behind: the caller must hold the journal's lock, and must call Remove when done.
func Listen(journal string) (net.Listener, error) {
	l, err := listen(SocketPath(journal))
	if err != nil {
		return nil, fmt.Errorf("open the socket beside the journal: %w", err)
	}
	return l, nil
}

func listen(path string) (net.Listener, error) {
	if fi, err := os.Lstat(path); err == nil && fi.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s is in the way: it is not a socket", path)
	}
	// The socket is made in a directory that others cannot enter, and moved once its permissions are set.
	dir := path + ".new"
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	address, done := filepath.Join(dir, "s"), func() {}
	if len(address) > maxAddress {
		link, remove, err := shortLink(dir)
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
	made := filepath.Join(dir, "s")
	err = os.Chmod(made, 0o600)
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Remove removes the socket beside a journal, if there is one.
func Remove(journal string) error {
	if err := os.Remove(SocketPath(journal)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket beside the journal: %w", err)
	}
	return nil
}

// shortLink makes a link to a path that is too long for a socket address, in a temporary directory; remove
// deletes both.
func shortLink(to string) (link string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "tattler-")
	if err != nil {
		return "", nil, fmt.Errorf("%s exceeds the %d bytes of a socket address, and no link to it could be made: %s; choose a shorter path for the journal",
			to, maxAddress, err.Error()) // not wrapped: the socket is not what is missing
	}
	link = filepath.Join(dir, "l")
	if err := os.Symlink(to, link); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return link, func() { _ = os.RemoveAll(dir) }, nil // at worst, an empty directory remains
}

// dial connects to a socket with a path of any length.
func dial(ctx context.Context, path string) (net.Conn, error) {
	if len(path) > maxAddress {
		link, remove, err := shortLink(path)
		if err != nil {
			return nil, err
		}
		defer remove()
		path = link
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}
