package rabbitmq

import (
	"errors"
	"io"
	"net"
	"testing"
)

// TestFirstError: the server's reason explains why the connection is closed.
func TestFirstError(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	f := &firstError{Conn: ours}
	if err := f.explain(net.ErrClosed); !errors.Is(err, net.ErrClosed) {
		t.Errorf("before anything was read: %v", err)
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := f.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if err := f.explain(&net.OpError{Op: "write", Err: net.ErrClosed}); !errors.Is(err, io.EOF) {
		t.Errorf("explained as %v", err)
	}
	if other := errors.New("other"); !errors.Is(f.explain(other), other) {
		t.Error("another error is not explained")
	}
}
