package checkpoint

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

var errBody = errors.New("a record does not have the fields of its kind")

// body reads the fields of a record. After one that is not there, bad is set and everything is zero.
type body struct {
	rest []byte
	bad  bool
}

func (b *body) fail() {
	b.rest, b.bad = nil, true
}

func (b *body) byte() byte {
	if len(b.rest) == 0 {
		b.fail()
		return 0
	}
	c := b.rest[0]
	b.rest = b.rest[1:]
	return c
}

func (b *body) uvarint() uint64 {
	v, n := binary.Uvarint(b.rest)
	if n <= 0 {
		b.fail()
		return 0
	}
	b.rest = b.rest[n:]
	return v
}

// number is a uvarint that fits an int64.
func (b *body) number() int64 {
	v := b.uvarint()
	if v > math.MaxInt64 {
		b.fail()
		return 0
	}
	return int64(v)
}

// sum is a fixed number of eight bytes.
func (b *body) sum() uint64 {
	if len(b.rest) < sumSize {
		b.fail()
		return 0
	}
	s := binary.LittleEndian.Uint64(b.rest)
	b.rest = b.rest[sumSize:]
	return s
}

// bytes is part of the record: valid as long as that.
func (b *body) bytes() []byte {
	n := b.uvarint()
	if n > uint64(len(b.rest)) {
		b.fail()
		return nil
	}
	s := b.rest[:n:n]
	b.rest = b.rest[n:]
	return s
}

func (b *body) time() time.Time { return time.UnixMilli(b.number()) }

// end is the error of a record that must have nothing left.
func (b *body) end() error {
	if b.bad || len(b.rest) > 0 {
		return errBody
	}
	return nil
}

func readHeader(fields []byte) (header, error) {
	b := body{rest: fields}
	h := header{
		stream: string(b.bytes()), fingerprint: string(b.bytes()), identity: string(b.bytes()),
		created: b.time(),
	}
	return h, b.end()
}

func readDict(fields []byte) (id uint64, dict []byte, err error) {
	b := body{rest: fields}
	id = b.uvarint()
	if b.bad || id == 0 {
		return 0, nil, errBody
	}
	return id, b.rest, nil
}

// put is an object as it is in a record: parts of that, valid as long.
type put struct {
	namespace, name, uid, rv []byte
	format                   wire.Format
	sum, dict                uint64
	payload                  []byte
}

func readPut(fields []byte) (put, error) {
	b := body{rest: fields}
	p := put{
		namespace: b.bytes(), name: b.bytes(), uid: b.bytes(), rv: b.bytes(),
		format: wire.Format(b.byte()), sum: b.sum(), dict: b.uvarint(),
	}
	if b.bad || p.format != wire.JSON && p.format != wire.Protobuf {
		return put{}, errBody
	}
	p.payload = b.rest
	return p, nil
}

func readDelete(fields []byte) (namespace, name []byte, err error) {
	b := body{rest: fields}
	namespace, name = b.bytes(), b.bytes()
	return namespace, name, b.end()
}

// readCommit reads the fields behind the mark.
func readCommit(fields []byte) (commit, error) {
	b := body{rest: fields}
	c := commit{
		head:    store.Head{Phase: store.Phase(b.byte()), Epoch: b.number(), Version: string(b.bytes())},
		objects: int(b.number()), durable: b.number(), at: b.time(),
	}
	c.head.Served = b.sum()
	if p := c.head.Phase; p != store.Listing && p != store.Live {
		return commit{}, errBody
	}
	return c, b.end()
}
