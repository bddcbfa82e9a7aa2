package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/internal/delta"
)

// A content is an object's JSON at rest: how it is stored (one byte), the CRC-32C of the JSON
// (big-endian), and the rest. These are its forms; they are in files.
const (
	formPlain  = iota // as it is
	formS2            // compressed quickly: a state, which the next update replaces
	formZstd          // compressed well: what stays
	formDelta         // the difference from another content
	formDeltaZ        // the same, compressed
	formLost          // damage was found when its neighbour was removed: nothing follows
	formPurged        // what was before a change, and was removed for good: nothing follows
)

const (
	headSize = 5
	// longDelta is from where on the difference's own text is worth a compressor.
	longDelta = 300
)

var (
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
	errChecksum = errors.New("checksum does not match")
	errLost     = errors.New("lost to damage that was found earlier")
)

// codec writes and reads contents. It is not safe for concurrent use.
type codec struct {
	delta   delta.Encoder
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
	_ = c.enc.Close() // there is no writer behind it that could fail
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

// whole makes a content that stays and needs no other.
func (c *codec) whole(plain []byte) []byte {
	out := c.enc.EncodeAll(plain, head(formZstd, plain))
	if len(out) >= headSize+len(plain) {
		return append(head(formPlain, plain), plain...)
	}
	return out
}

// diff makes a content that is read with base.
func (c *codec) diff(plain, base []byte) []byte {
	c.scratch = c.delta.Append(c.scratch[:0], plain, base)
	if len(c.scratch) >= longDelta {
		if out := c.enc.EncodeAll(c.scratch, head(formDeltaZ, plain)); len(out) < headSize+len(c.scratch) {
			return out
		}
	}
	return append(head(formDelta, plain), c.scratch...)
}

// purged stands for what Purge removed.
func purged() []byte { return head(formPurged, nil) }

func isPurged(content []byte) bool { return len(content) > 0 && content[0] == formPurged }

// purgedForm is what such a content begins with.
var purgedForm = []byte{formPurged}

// lost is the content that cannot be read any more.
func lost() []byte { return head(formLost, nil) }

// isWhole tells whether a content is read without another.
func isWhole(content []byte) bool {
	return len(content) > 0 && content[0] != formDelta && content[0] != formDeltaZ
}

// headOf reads the beginning of a content; NULL is nil.
func headOf(s *sqlite3.Stmt, col int) []byte {
	if s.ColumnType(col) == sqlite3.NULL {
		return nil
	}
	content := s.ColumnRawBlob(col)
	return append(make([]byte, 0, headSize), content[:min(len(content), headSize)]...)
}

// matches tells whether a content, or its head, is of these bytes, as far as the checksum tells.
func matches(content, plain []byte) bool {
	return len(content) >= headSize && binary.BigEndian.Uint32(content[1:]) == crc32.Checksum(plain, castagnoli)
}

// open reads a content; base is what its difference is from.
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
		return delta.Apply(nil, b, base)
	case formDeltaZ:
		diff, err := c.dec.DecodeAll(b, nil)
		if err != nil {
			return nil, err
		}
		return delta.Apply(nil, diff, base)
	case formLost:
		return nil, errLost
	default:
		return nil, fmt.Errorf("content of unknown form %d", form)
	}
}
