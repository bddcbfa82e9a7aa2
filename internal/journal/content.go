package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/internal/delta"
)

// A content is an object's JSON as stored: its form (one byte), the CRC-32C of the JSON (big-endian), and the rest.
// The forms are part of the file format.
const (
	formPlain  = iota // uncompressed
	formS2            // compressed fast: a state, which the next update replaces
	formZstd          // compressed well: kept
	formDelta         // a delta from another content
	formDeltaZ        // a compressed delta
	formLost          // found damaged when its neighbour was removed; empty
	formPurged        // the state before a change, purged; empty
)

const (
	headSize = 5
	// longDelta is the size in bytes from which compressing a delta pays.
	longDelta = 300
)

var (
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
	errChecksum = errors.New("checksum does not match")
	errLost     = errors.New("lost to damage found earlier")
)

// codec writes and reads contents. It is not safe for concurrent use.
type codec struct {
	index   delta.Index
	enc     *zstd.Encoder
	dec     *zstd.Decoder
	scratch []byte
}

func newCodec() (*codec, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(delta.MaxSize), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	return &codec{enc: enc, dec: dec}, nil
}

func (c *codec) close() {
	c.dec.Close()
	_ = c.enc.Close() // no underlying writer, so it cannot fail
}

func head(form byte, plain []byte) []byte {
	b := make([]byte, headSize, headSize+len(plain)/3+64)
	b[0] = form
	binary.BigEndian.PutUint32(b[1:], crc32.Checksum(plain, castagnoli))
	return b
}

// state makes a content that is soon replaced.
func (c *codec) state(plain []byte) []byte {
	c.scratch = s2.Encode(c.scratch[:cap(c.scratch)], plain)
	if len(c.scratch) >= len(plain) {
		return append(head(formPlain, plain), plain...)
	}
	return append(head(formS2, plain), c.scratch...)
}

// whole makes a content that is kept and needs no base.
func (c *codec) whole(plain []byte) []byte {
	out := c.enc.EncodeAll(plain, head(formZstd, plain))
	if len(out) >= headSize+len(plain) {
		return append(head(formPlain, plain), plain...)
	}
	return out
}

// diff makes a content that is read with base.
func (c *codec) diff(plain, base []byte) []byte {
	c.index.Build(base)
	c.scratch = delta.Append(c.scratch[:0], plain, base, &c.index, math.MaxInt)
	if len(c.scratch) >= longDelta {
		if out := c.enc.EncodeAll(c.scratch, head(formDeltaZ, plain)); len(out) < headSize+len(c.scratch) {
			return out
		}
	}
	return append(head(formDelta, plain), c.scratch...)
}

// purged returns the content that replaces one that Purge removed.
func purged() []byte { return head(formPurged, nil) }

func isPurged(content []byte) bool { return len(content) > 0 && content[0] == formPurged }

// purgedForm is the first byte of a purged content.
var purgedForm = []byte{formPurged}

// lost returns the content that replaces one that cannot be read.
func lost() []byte { return head(formLost, nil) }

// isWhole reports whether a content is read without a base.
func isWhole(content []byte) bool {
	return len(content) > 0 && content[0] != formDelta && content[0] != formDeltaZ
}

// headOf returns the head of a content; NULL is nil.
func headOf(s *sqlite3.Stmt, col int) []byte {
	if s.ColumnType(col) == sqlite3.NULL {
		return nil
	}
	content := s.ColumnRawBlob(col)
	return append(make([]byte, 0, headSize), content[:min(len(content), headSize)]...)
}

// matches reports whether a content, given whole or as its head, has the checksum of plain.
func matches(content, plain []byte) bool {
	return len(content) >= headSize && binary.BigEndian.Uint32(content[1:]) == crc32.Checksum(plain, castagnoli)
}

// open reads a content; base is the base of its delta, if it is one.
func (c *codec) open(content, base []byte) ([]byte, error) {
	if len(content) < headSize {
		return nil, fmt.Errorf("content of %d bytes", len(content))
	}
	plain, err := c.unpack(content[0], content[headSize:], base)
	if err != nil {
		return nil, err
	}
	if !matches(content, plain) {
		return nil, errChecksum
	}
	return plain, nil
}

func (c *codec) unpack(form byte, b, base []byte) ([]byte, error) {
	switch form {
	case formPlain:
		return append([]byte(nil), b...), nil
	case formS2:
		if n, err := s2.DecodedLen(b); err == nil && n > delta.MaxSize {
			return nil, s2.ErrTooLarge
		}
		return s2.Decode(nil, b)
	case formZstd:
		return c.dec.DecodeAll(b, nil)
	case formDelta:
		return delta.Apply(nil, b, base, delta.MaxSize)
	case formDeltaZ:
		diff, err := c.dec.DecodeAll(b, nil)
		if err != nil {
			return nil, err
		}
		return delta.Apply(nil, diff, base, delta.MaxSize)
	case formLost:
		return nil, errLost
	default:
		return nil, fmt.Errorf("content of unknown form %d", form)
	}
}
