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

// Listen opens the address of a configuration: HOST:PORT, or :PORT on every interface. With profiles only
// a loopback address is opened. The errors say what to do.
func Listen(ctx context.Context, address string, profiles bool) (net.Listener, error) {
	at, err := resolve(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if profiles && !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("listen on %s: %w", address, errExposed)
	}
	text := at.String()
	if !at.Addr().IsValid() { // every interface, of IPv4 and of IPv6, as far as there is each
		text = ":" + strconv.Itoa(int(at.Port()))
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", text)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, advise(err))
	}
	return l, nil
}

// errExposed is the refusal of profiles where others reach them: they show the program's memory, and cost
// time to make.
var errExposed = errors.New("profiles are served on a loopback address only: leave out listen.pprof, or choose 127.0.0.1 and use kubectl port-forward")

// resolve finds where an address is; without a host, the Addr is invalid.
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
	ip := found[0] // there is one, or an error
	for _, f := range found {
		if f.Unmap().Is4() { // what clients try first where a name has both
			ip = f
			break
		}
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)), nil
}

// advise says what can be done about an address that cannot be opened.
func advise(err error) error {
	for _, known := range []struct {
		errno syscall.Errno
		do    string
	}{
		{syscall.EADDRINUSE, "another process has the port: end it, or choose another listen.address"},
		{syscall.EACCES, "this user may not have the port: choose one above 1023 for listen.address"},
		{syscall.EADDRNOTAVAIL, "this machine does not have the address: choose one that it has, or :PORT, for listen.address"},
	} {
		if errors.Is(err, known.errno) {
			return fmt.Errorf("%w: %s", known.errno, known.do)
		}
	}
	return err
}
