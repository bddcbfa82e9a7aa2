package mqtt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

const (
	// maxAnswer bounds the packets that we accept: the server publishes nothing to us.
	maxAnswer = 64 << 10
	// maxHeader is the maximum length of a packet's type and length.
	maxHeader = 5
)

// errHungUp means that the server closed the connection without a reason.
var errHungUp = errors.New("the server hung up")

// plain replaces the various errors of a closed connection by errHungUp.
func plain(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return errHungUp
	}
	return err
}

// wire is the connection below the client. It writes each packet at once and within the timeout, and passes the
// client no packet that is too long, because the client allocates the announced length. It is a sync.Locker: the
// client locks it while it writes a packet.
type wire struct {
	net.Conn          // with TLS, if configured
	raw      net.Conn // the TCP connection, whose Close does not block
	timeout  time.Duration
	broken   func(error) // called for an error of writing

	mu     sync.Mutex
	writer *bufio.Writer

	reader  *bufio.Reader
	greeted bool // the first packet has arrived
	rest    int  // the bytes of the current packet that were not read
}

func newWire(conn, raw net.Conn, timeout time.Duration, broken func(error)) *wire {
	const buffer = 32 << 10
	return &wire{
		Conn: conn, raw: raw, timeout: timeout, broken: broken,
		writer: bufio.NewWriterSize(conn, buffer), reader: bufio.NewReader(conn),
	}
}

func (w *wire) Close() error { return w.raw.Close() }

func (w *wire) Lock() {
	w.mu.Lock()
	_ = w.raw.SetWriteDeadline(time.Now().Add(w.timeout)) // it fails only if the connection is closed
}

// Unlock writes the packet.
func (w *wire) Unlock() {
	err := w.writer.Flush()
	w.mu.Unlock()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.broken(fmt.Errorf("the server read nothing within %s", w.timeout))
	case err != nil:
		w.broken(err)
	}
}

// Write writes a part of a packet to the buffer.
func (w *wire) Write(b []byte) (int, error) { return w.writer.Write(b) }

// Read reads from one packet at a time, and checks it first.
func (w *wire) Read(b []byte) (int, error) {
	if w.rest == 0 {
		length, err := w.next()
		if err != nil {
			return 0, plain(err)
		}
		w.rest = length
	}
	n, err := w.reader.Read(b[:min(len(b), w.rest)])
	w.rest -= n
	return n, plain(err)
}

// next returns the length of the next packet, which must be acceptable.
func (w *wire) next() (int, error) {
	// The first byte shows whether the server speaks MQTT. Do not wait for the length that another protocol implies.
	head, err := w.reader.Peek(1)
	if err != nil {
		return 0, err
	}
	if !w.greeted && head[0] != packets.CONNACK<<4 {
		return 0, fmt.Errorf("the server's answer begins with the byte 0x%02x, which is not MQTT 5", head[0])
	}
	length, n := 0, 1
	for more := true; more; n++ {
		if n == maxHeader {
			return 0, errors.New("malformed packet length")
		}
		if head, err = w.reader.Peek(n + 1); err != nil {
			return 0, err
		}
		length |= int(head[n]&0x7f) << (7 * (n - 1))
		more = head[n] >= 0x80
	}
	if length > maxAnswer {
		return 0, fmt.Errorf("a packet of %d bytes exceeds the limit of %d", length, maxAnswer)
	}
	const old = 2 // the length of a CONNACK before MQTT 5
	if !w.greeted && length == old {
		if head, err = w.reader.Peek(n + old); err != nil {
			return 0, err
		}
		return 0, oldAnswer(head[n+1])
	}
	w.greeted = true
	return n + length, nil
}
