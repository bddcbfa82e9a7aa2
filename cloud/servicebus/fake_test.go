package servicebus

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// batchFormat is the message format that marks a batch in Service Bus.
const batchFormat = 0x80013700

// fake is our server, which speaks as much AMQP as Service Bus's client needs to send. Its answers follow that
// client's source and Microsoft's documentation.
type fake struct {
	t *testing.T
	l net.Listener
	// largest is the maximum length of a message on a link.
	largest uint64

	mu       sync.Mutex
	messages []*amqp.Message
	batches  []int // the number of messages per transfer, accepted or not
	b        sinktest.Behaviour
	id       string
	changed  chan struct{} // closed when the behaviour changes
	each     func(*amqp.Message) *amqp.Error
	token    int32 // the answer to a token
	downs    int
	conns    map[net.Conn]bool
	served   sync.WaitGroup
}

func newFake(t *testing.T) *fake {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, l: l, largest: 256 << 10, token: 202, changed: make(chan struct{}), conns: map[net.Conn]bool{}}
	f.served.Go(f.accept)
	t.Cleanup(func() {
		l.Close()
		f.Behave(sinktest.Down, "")
		f.served.Wait()
	})
	return f
}

// Target returns a connection string like that of Microsoft's emulator, whose connections do not use TLS.
func (f *fake) Target() string {
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=send;SharedAccessKey=%s;UseDevelopmentEmulator=true;EntityPath=changes", f.l.Addr(), sharedKey)
}

const sharedKey = "the/shared+key=of/the/test"

func (f *fake) Behave(b sinktest.Behaviour, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.b, f.id = b, id
	close(f.changed)
	f.changed = make(chan struct{})
	if b == sinktest.Down {
		for conn := range f.conns {
			conn.Close()
		}
	}
}

func (f *fake) Received(t *testing.T) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for _, m := range f.messages {
		var e struct{ ID string }
		if err := json.Unmarshal(m.GetData(), &e); err != nil || e.ID == "" || e.ID != m.Properties.MessageID {
			t.Errorf("message %q with %v: %v", m.GetData(), m.Properties, err)
		}
		ids = append(ids, e.ID)
	}
	return ids
}

func (f *fake) accept() {
	for {
		conn, err := f.l.Accept()
		if err != nil {
			return // the test has ended
		}
		f.mu.Lock()
		f.downs++
		down := f.b == sinktest.Down && f.downs%3 == 0 // otherwise it goes down during a transfer
		if !down {
			f.conns[conn] = true
		}
		f.mu.Unlock()
		if down {
			conn.Close()
			continue
		}
		f.served.Go(func() {
			defer func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				delete(f.conns, conn)
				conn.Close()
			}()
			_ = (&peer{fake: f, conn: conn, links: map[string]*link{}}).serve() // the client may leave at any time
		})
	}
}

// peer is one connection.
type peer struct {
	*fake
	conn  net.Conn
	links map[string]*link
}

// link is a link of a client.
type link struct {
	receives bool // whether the client receives on it
	address  string
	transfer []byte // the received part of a message
	delivery value
	format   uint32
}

func at(channel uint16, handle value) string { return fmt.Sprint(channel, "/", handle.number()) }

func (p *peer) serve() error {
	if err := shake(p.conn); err != nil {
		return err
	}
	for {
		fr, err := readFrame(p.conn)
		if err != nil {
			return err
		}
		switch fr.code {
		case open:
			err = p.write(0, described(open, text("fake"), nothing, uint32of(64<<10)))
		case begin:
			err = p.write(fr.channel, described(begin, uint16of(fr.channel), uint32of(0), uint32of(1<<30), uint32of(1<<30)))
		case attach:
			err = p.attach(fr)
		case transfer:
			err = p.transfer(fr)
		case detach:
			err = p.write(fr.channel, described(detach, fr.field(0), boolean(true)))
		case end:
			err = p.write(fr.channel, described(end))
		case closing:
			return p.write(0, described(closing))
		}
		if err != nil {
			return err
		}
	}
}

func (p *peer) write(channel uint16, performative value) error {
	return writeFrame(p.conn, 0, channel, performative, nil)
}

// attach accepts a link: name, handle, role, settlement, source, target.
func (p *peer) attach(fr frame) error {
	l := &link{receives: fr.field(2).truth()}
	_, target, err := list(fr.field(6))
	if err != nil {
		return err
	}
	if len(target) > 0 {
		l.address = string(target[0].bytes())
	}
	p.links[at(fr.channel, fr.field(1))] = l
	count := nothing
	if l.receives {
		count = uint32of(0)
	}
	err = p.write(fr.channel, described(attach, fr.field(0), fr.field(1), boolean(!l.receives), fr.field(3), fr.field(4),
		fr.field(5), fr.field(6), nothing, nothing, count, uint64of(p.largest)))
	if err != nil || l.receives {
		return err
	}
	return p.write(fr.channel, described(flow, uint32of(1), uint32of(1<<30), uint32of(1), uint32of(1<<30), fr.field(1), uint32of(0), uint32of(1<<20)))
}

// transfer handles a part of a message: handle, delivery id, tag, format, settled, more.
func (p *peer) transfer(fr frame) error {
	l := p.links[at(fr.channel, fr.field(0))]
	if l == nil {
		return errors.New("a transfer on no link")
	}
	if len(l.transfer) == 0 {
		l.delivery, l.format = fr.field(1), fr.field(3).number() // only the first part has them
	}
	l.transfer = append(l.transfer, fr.payload...)
	if fr.field(5).truth() {
		return nil
	}
	payload, format := l.transfer, l.format
	l.transfer = nil
	var m amqp.Message
	if err := m.UnmarshalBinary(payload); err != nil {
		p.t.Error(err)
		return err
	}
	state := described(accepted)
	if l.address == "$cbs" {
		defer func() { _ = p.putToken(fr.channel, &m) }() // after acknowledging the message
	} else {
		refused, err := p.judge(&m, format)
		if err != nil {
			return err
		}
		if refused != nil {
			state = described(rejected, described(failure, symbol(string(refused.Condition)), text(refused.Description)))
		}
	}
	return p.write(fr.channel, described(disposition, boolean(true), l.delivery, l.delivery, boolean(true), state))
}

// judge accepts a message or a batch, or returns why not. An error ends the connection.
func (p *peer) judge(m *amqp.Message, format uint32) (*amqp.Error, error) {
	ms := []*amqp.Message{m}
	if format == batchFormat {
		ms = nil
		for _, data := range m.Data {
			var of amqp.Message
			if err := of.UnmarshalBinary(data); err != nil {
				p.t.Error(err)
			}
			ms = append(ms, &of)
		}
	}
	p.mu.Lock()
	b, id, changed, each := p.b, p.id, p.changed, p.each
	p.batches = append(p.batches, len(ms))
	p.mu.Unlock()
	switch b {
	case sinktest.Down:
		return nil, net.ErrClosed
	case sinktest.Busy:
		return &amqp.Error{Condition: "com.microsoft:server-busy", Description: fmt.Sprintf(
			"The request was terminated because the entity is being throttled. Please wait %d seconds and try again.", int(sinktest.BusyFor/time.Second))}, nil
	case sinktest.Hangs:
		<-changed
	case sinktest.Slow:
		<-time.After(20 * time.Millisecond)
	case sinktest.Refuses:
		if slices.ContainsFunc(ms, func(m *amqp.Message) bool { return m.Properties.MessageID == id }) {
			return &amqp.Error{Condition: "com.microsoft:argument-error", Description: "The message is not valid."}, nil
		}
	}
	for _, m := range ms {
		if each != nil {
			if refused := each(m); refused != nil {
				return refused, nil
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages = append(p.messages, ms...)
	return nil, nil
}

// putToken answers a put-token request on the client's other link.
func (p *peer) putToken(channel uint16, m *amqp.Message) error {
	p.mu.Lock()
	status := p.token
	p.mu.Unlock()
	answer := amqp.Message{
		Properties:            &amqp.MessageProperties{CorrelationID: m.Properties.MessageID},
		ApplicationProperties: map[string]any{"status-code": status, "status-description": "as asked for"},
		Value:                 "",
	}
	payload, err := answer.MarshalBinary()
	if err != nil {
		return err
	}
	for handle := range uint32(8) {
		if l := p.links[at(channel, uint32of(handle))]; l != nil && l.receives {
			return writeFrame(p.conn, 0, channel, described(transfer, uint32of(handle), uint32of(0), binaryOf([]byte{1}), uint32of(0), boolean(true)), payload)
		}
	}
	return errors.New("no link for the answer")
}
