package ops

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// Listen opens the address of a configuration: HOST:PORT, or :PORT on every interface. With profiles, it only
// opens a loopback address. The errors say what to do; setting is what the user calls the address.
func Listen(ctx context.Context, setting, address string, profiles bool) (net.Listener, error) {
	at, err := resolve(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if profiles && !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("listen on %s: %w", address, errExposed)
	}
	text := at.String()
	if !at.Addr().IsValid() { // every interface, of IPv4 and IPv6 as available
		text = ":" + strconv.Itoa(int(at.Port()))
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", text)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, advise(err, setting))
	}
	return l, nil
}

// errExposed refuses to serve profiles to other machines: they show the program's memory, and take time to
// make.
var errExposed = errors.New("profiles are served on a loopback address only: remove listen.pprof, or choose 127.0.0.1 and use kubectl port-forward")

// resolve returns an address's host and port; without a host, the Addr is invalid.
func resolve(ctx context.Context, address string) (at netip.AddrPort, err error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return at, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return at, err
	}
	if host == "" {
		return netip.AddrPortFrom(netip.Addr{}, uint16(port)), nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return at, err
	}
	ip := found[0] // there is at least one, or an error
	for _, f := range found {
		if f.Unmap().Is4() { // clients try it first if a name has both
			ip = f
			break
		}
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)), nil
}

// advise adds what to do if the address of a setting cannot be opened.
func advise(err error, setting string) error {
	for _, known := range []struct {
		errno syscall.Errno
		do    string
	}{
		{syscall.EADDRINUSE, "something has the port: stop it, or choose another %s"},
		{syscall.EACCES, "this user may not have the port: choose one above 1023 for %s"},
		{syscall.EADDRNOTAVAIL, "this machine does not have the address: choose one that it has, or :PORT, for %s"},
	} {
		if errors.Is(err, known.errno) {
			return fmt.Errorf("%w: "+known.do, known.errno, setting)
		}
	}
	return err
}
