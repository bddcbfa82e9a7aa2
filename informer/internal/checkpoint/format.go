package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A file is a preface and records; docs/checkpoint.md describes both.
const (
	magic         = "ttlrckpt"
	formatVersion = 3 // nothing older was released, and nothing older is read

	// The preface: magic, format version, the file's random id, and the CRC of all that.
	idSize      = 16
	prefaceSize = len(magic) + 4 + idSize + 4

	// A record: the length of its body, a CRC, the body.
	recordHead = 8
	// maxRecord bounds a body: a compressed object is hardly larger than the object.
	maxRecord = wire.MaxObject + 1<<20
	// sumSize is what a sum takes, in a put and, for the served form, in a commit.
	sumSize = 8
	// maxCommit bounds the body of a commit that is looked for, not one that is read in its turn.
	maxCommit = 1 << 10
)

// The kinds of records, which are the first byte of their bodies.
const (
	kindHeader = 1 + iota
	kindDict
	kindPut
	kindDelete
	kindCommit
)

// commitMark begins the body of every commit: behind damage, commits can be found by it.
const commitMark = "\x05!COMMIT"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal tells records of this file, at their places, from all others.
type seal struct {
	file  uint32
	place [12]byte // of the record at hand: here, since what is given to crc32 escapes
}

func newSeal(id []byte) seal { return seal{file: crc32.Checksum(id, castagnoli)} }

// crc is that of a record's body at an offset of the file.
func (s *seal) crc(offset int64, body []byte) uint32 {
	binary.LittleEndian.PutUint64(s.place[:], uint64(offset))
	binary.LittleEndian.PutUint32(s.place[8:], uint32(len(body)))
	return crc32.Update(crc32.Update(s.file, castagnoli, s.place[:]), castagnoli, body)
}

// appendPreface appends a file's first bytes.
func appendPreface(to, id []byte) []byte {
	start := len(to)
	to = append(to, magic...)
	to = binary.LittleEndian.AppendUint32(to, formatVersion)
	to = append(to, id...)
	return binary.LittleEndian.AppendUint32(to, crc32.Checksum(to[start:], castagnoli))
}

// readPreface returns the file's id.
func readPreface(b []byte) (id []byte, err error) {
	if len(b) < prefaceSize || string(b[:len(magic)]) != magic {
		return nil, errors.New("it is not a checkpoint")
	}
	version := binary.LittleEndian.Uint32(b[len(magic):])
	if version != formatVersion {
		return nil, fmt.Errorf("its format has version %d, and this program reads version %d", version, formatVersion)
	}
	sum := prefaceSize - 4
	if binary.LittleEndian.Uint32(b[sum:]) != crc32.Checksum(b[:sum], castagnoli) {
		return nil, errors.New("its first bytes are damaged")
	}
	return b[len(magic)+4 : sum], nil
}

// header is the first record.
type header struct {
	stream, fingerprint, identity string
	created                       time.Time
}

// sameAs reports whether a file with this header can be continued by one with the other.
func (h *header) sameAs(o *header) bool {
	return h.stream == o.stream && h.fingerprint == o.fingerprint && h.identity == o.identity
}

func (h *header) append(to []byte) []byte {
	to = append(to, kindHeader)
	to = appendString(to, h.stream)
	to = appendString(to, h.fingerprint)
	to = appendString(to, h.identity)
	return appendTime(to, h.created)
}

func appendDict(to []byte, id uint64, dict []byte) []byte {
	to = append(to, kindDict)
	to = binary.AppendUvarint(to, id)
	return append(to, dict...)
}

func appendPut(to []byte, k store.Key, v *compact.Version, payload []byte, dict uint64) []byte {
	to = append(to, kindPut)
	to = appendKey(to, k)
	to = appendString(to, v.UID())
	to = appendString(to, v.RV())
	to = append(to, byte(v.Format()))
	to = binary.LittleEndian.AppendUint64(to, v.Sum())
	to = binary.AppendUvarint(to, dict)
	return append(to, payload...)
}

func appendDelete(to []byte, k store.Key) []byte {
	return appendKey(append(to, kindDelete), k)
}

// putSize is what appendPut and the record's head make of a version, in bytes.
func putSize(k store.Key, v *compact.Version, payload []byte, dict uint64) int64 {
	n := recordHead + 2 + sumSize + protowire.SizeVarint(dict) + len(payload)
	for _, s := range [...]string{k.Namespace, k.Name, v.UID(), v.RV()} {
		n += protowire.SizeVarint(uint64(len(s))) + len(s)
	}
	return int64(n)
}

// commit ends a transaction.
type commit struct {
	head    store.Head
	objects int   // that the file holds now
	durable int64 // as many bytes of the file had been made durable when this was written
	at      time.Time
}

func (c *commit) append(to []byte) []byte {
	to = append(to, commitMark...)
	to = append(to, byte(c.head.Phase))
	to = binary.AppendUvarint(to, uint64(c.head.Epoch))
	to = appendString(to, c.head.Version)
	to = binary.AppendUvarint(to, uint64(c.objects))
	to = binary.AppendUvarint(to, uint64(c.durable))
	to = appendTime(to, c.at)
	return binary.LittleEndian.AppendUint64(to, c.head.Served)
}

func appendKey(to []byte, k store.Key) []byte {
	return appendString(appendString(to, k.Namespace), k.Name)
}

func appendString(to []byte, s string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(s))), s...)
}

func appendTime(to []byte, t time.Time) []byte {
	return binary.AppendUvarint(to, uint64(max(0, t.UnixMilli())))
}
