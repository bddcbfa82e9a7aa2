package devcluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are chosen below the range for outgoing connections (from 32768 on Linux,
// 49152 on macOS). Port 0 would choose from that range: while a stopped API
// server's port is free, a client that keeps reconnecting can be given that port
// for its own end. It then connects to itself, and the server cannot come back.
const (
	firstPort = 20000
	lastPort  = 29999
)

// FreePorts returns n different unused ports of 127.0.0.1, which no outgoing connection is
// given. They are not reserved: another process may listen on one before the caller does.
func FreePorts(n int) ([]int, error) {
	var ports []int
	var last error
	for range 500 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		// Keep it open until all are found, so that all are different.
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
		if ports, err = FreePorts(n); err != nil {
			return err
		}
		if err = start(ports); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}
