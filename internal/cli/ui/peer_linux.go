package ui

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// sameUser returns an error unless a program of this user or of root has the client's end of a connection.
func sameUser(client, server netip.AddrPort) error {
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		user, found, err := userOf(name, client, server)
		switch {
		case errors.Is(err, os.ErrNotExist): // without IPv6
		case err != nil:
			return fmt.Errorf("find the browser's user: %w", err)
		case found && user != 0 && user != os.Geteuid():
			return fmt.Errorf("the browser belongs to user %d of this machine, and tattler ui takes orders of user %d only", user, os.Geteuid())
		case found:
			return nil
		}
	}
	return errors.New("the system does not say to which user the browser belongs")
}

// userOf finds the user of the client's end of a connection in one of the kernel's tables.
func userOf(table string, client, server netip.AddrPort) (user int, found bool, err error) {
	f, err := os.Open(table)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	return readUser(f, client, server)
}

// readUser reads a table of connections. Its columns are described in proc_net_tcp.rst of the kernel's documentation: the
// second is the local end, the third the remote end, the eighth the user.
func readUser(table io.Reader, client, server netip.AddrPort) (user int, found bool, err error) {
	s := bufio.NewScanner(table)
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) < 8 || !isEnd(f[1], client) || !isEnd(f[2], server) {
			continue
		}
		user, err = strconv.Atoi(f[7])
		return user, err == nil, err
	}
	return 0, false, s.Err()
}

// isEnd reports whether an end in the table is an address. IPv4 addresses may be mapped to IPv6.
func isEnd(text string, at netip.AddrPort) bool {
	four, sixteen := at.Addr().Unmap(), at.Addr().As16()
	port := fmt.Sprintf(":%04X", at.Port())
	return text == words(sixteen[:])+port || four.Is4() && text == words(four.AsSlice())+port
}

// words writes an address as the kernel does: in words of four bytes, each in the machine's order, which is little-endian on
// all that we build for.
func words(b []byte) string {
	var text strings.Builder
	for ; len(b) >= 4; b = b[4:] {
		fmt.Fprintf(&text, "%02X%02X%02X%02X", b[3], b[2], b[1], b[0])
	}
	return text.String()
}
