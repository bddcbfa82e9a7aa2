package sink

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// Scheme describes the URLs of a protocol's servers.
type Scheme struct {
	// Plain and Secure are the schemes without and with TLS.
	Plain, Secure string
	// PlainPort and SecurePort are the default ports.
	PlainPort, SecurePort string
	// Example is a URL to show if there is none. It may be empty.
	Example string
}

// Address is a parsed URL.
type Address struct {
	*url.URL
	// Secure means that the server uses TLS.
	Secure bool
	// HostPort is the address to connect to.
	HostPort string
}

// Parse parses a URL. Its errors do not quote it, because it may contain a password.
func (s Scheme) Parse(text string) (Address, error) {
	u, err := url.Parse(text)
	switch {
	case text == "" && s.Example != "":
		return Address{}, errors.New("missing; an example is " + s.Example)
	case text == "":
		return Address{}, errors.New("missing")
	case err != nil: // its text may quote part of a password
		return Address{}, errors.New("not a URL (not shown: it may contain a credential)")
	case u.Scheme != s.Plain && u.Scheme != s.Secure || u.Hostname() == "":
		return Address{}, fmt.Errorf("must begin with %s:// or %s:// and a host", s.Secure, s.Plain)
	}
	if n, err := strconv.ParseUint(cmp.Or(u.Port(), "1"), 10, 16); err != nil || n == 0 {
		return Address{}, errors.New("the port must be a number from 1 to 65535")
	}
	a := Address{URL: u, Secure: u.Scheme == s.Secure}
	port := s.PlainPort
	if a.Secure {
		port = s.SecurePort
	}
	a.HostPort = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
	return a, nil
}

// Check returns an error if the options for TLS are invalid or have no effect, or if a URL's password would be sent
// to another machine without TLS and insecure does not allow it.
func (s Scheme) Check(a Address, t TLS, insecure bool) error {
	if !a.Secure && t != (TLS{}) {
		return fmt.Errorf("tls: the url does not begin with %s://", s.Secure)
	}
	if err := t.Validate(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if _, ok := a.User.Password(); ok && !a.Secure {
		if err := ClearText(insecure, "the password", s.Secure+"://", a.Hostname()); err != nil {
			return fmt.Errorf("url: %w", err)
		}
	}
	return nil
}
