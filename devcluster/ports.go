package devcluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken from below those that kernels give to outgoing connections
// (from 32768 on Linux, 49152 on macOS), not by listening on port 0, which takes
// them from among those. Otherwise, while a stopped API server's port is free, a
// client that reconnects to it again and again can be given that very port as its
// own, is then connected to itself, and the server cannot come back.
const (
	firstPort = 20000
	lastPort  = 29999
)

// freePorts returns n different ports of 127.0.0.1 on which nobody listens. They
// are not reserved: whoever uses them must be ready to lose the race.
func freePorts(n int) ([]int, error) {
	var ports []int
	var last error
	for range 500 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		// Kept open until all are found, so that all are different.
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		defer l.Close()
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("find free port: %w", errors.Join(errors.New("500 attempts failed"), last))
}

// withFreePorts calls start with free ports, and again with others while start
// fails because another process was faster.
func withFreePorts(n int, start func(ports []int) error) error {
	var err error
	for range 5 {
		var ports []int
		if ports, err = freePorts(n); err != nil {
			return err
		}
		if err = start(ports); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}
