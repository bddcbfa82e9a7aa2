package ui

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

// TestReadUser reads the kernel's tables, with IPv4, mapped and IPv6 addresses.
func TestReadUser(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0 20 4 30 10 -1
   2: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 3 1 0 20 4 30 10 -1
   3: 0000000000000000FFFF00000100007F:9C41 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1002        0 3 1
   4: 00000000000000000000000001000000:9C42 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000  1003        0 3 1
`
	for client, want := range map[string]int{"127.0.0.1:40000": 1001, "127.0.0.1:40001": 1002, "[::1]:40002": 1003, "127.0.0.1:40009": -1} {
		at := netip.MustParseAddrPort(client)
		user, found, err := readUser(strings.NewReader(table), at, netip.AddrPortFrom(at.Addr(), 8080))
		if err != nil || found != (want >= 0) || found && user != want {
			t.Errorf("%s: user %d, %v, %v, want %d", client, user, found, err, want)
		}
	}
	if _, _, err := readUser(strings.NewReader(strings.Replace(table, "1001", "root", 1)), netip.MustParseAddrPort("127.0.0.1:40000"), netip.MustParseAddrPort("127.0.0.1:8080")); err == nil {
		t.Error("a table that is not the kernel's")
	}
}

// TestSameUser: the system knows the user of a real connection, and not that of one that does not exist.
func TestSameUser(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	client, server := netip.MustParseAddrPort(c.LocalAddr().String()), netip.MustParseAddrPort(l.Addr().String())
	if err := sameUser(client, server); err != nil {
		t.Error(err)
	}
	if err := sameUser(netip.AddrPortFrom(client.Addr(), 1), server); err == nil {
		t.Error("there is no such connection")
	}
}
