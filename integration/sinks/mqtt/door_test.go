package mqtt_test

import (
	"log/slog"
	"net"
	"sync"

	"github.com/mochi-mqtt/server/v2/listeners"
)

// door is a listener that ends its connections itself, and waits until the server has finished with them. mochi's
// own listeners let the server end its clients while others leave; it can then deadlock (Clients.GetByListener of
// v2.7.9 takes a read lock twice).
type door struct {
	net.Listener
	serving sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

var _ listeners.Listener = (*door)(nil)

func newDoor(l net.Listener) *door { return &door{Listener: l, conns: map[net.Conn]bool{}} }

func (d *door) Init(*slog.Logger) error { return nil }

func (d *door) ID() string { return "test" }

func (d *door) Address() string { return d.Addr().String() }

func (d *door) Protocol() string { return "tcp" }

func (d *door) Serve(establish listeners.EstablishFn) {
	for {
		conn, err := d.Accept()
		if err != nil {
			return // closed
		}
		d.mu.Lock()
		if d.closed {
			conn.Close()
		} else {
			d.conns[conn] = true
			d.serving.Go(func() {
				_ = establish(d.ID(), conn) // the tests decide how a connection ends
				d.mu.Lock()
				defer d.mu.Unlock()
				delete(d.conns, conn)
			})
		}
		d.mu.Unlock()
	}
}

func (d *door) Close(listeners.CloseFn) {
	d.Listener.Close()
	d.mu.Lock()
	d.closed = true
	for conn := range d.conns {
		conn.Close()
	}
	d.mu.Unlock()
	d.serving.Wait()
}
