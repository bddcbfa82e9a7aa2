package rig

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports of servers that the tests start are chosen here, below the range for outgoing connections, so that no connection of
// another process is given one before the server listens, or while it is down.
const firstPort, lastPort = 10000, 19999

// FreePort returns an unused port of 127.0.0.1. It is not reserved.
func FreePort() (int, error) {
	var last error
	for range 500 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			return port, l.Close()
		}
		last = err
	}
	return 0, errors.Join(errors.New("find a free port: 500 attempts failed"), last)
}
