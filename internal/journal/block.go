package journal

import (
	"bytes"
	"encoding/base32"
	"encoding/binary"
	"math"

	"github.com/ncruces/go-sqlite3"
)

const (
	// blockSize is how many changes share a block: few enough to look through at once.
	blockSize = 256
	// idSize is how much a block keeps of each id, in bytes: eight characters. One of 2^40 others has
	// the same; who looks for an id compares it whole.
	idSize  = 5
	idChars = 8
)

// block sums up changes that follow each other, so that whole blocks are passed over and an id is
// found without an index, which would cost a random page for each change. A block is written once for
// each commit that adds to it; what retention removes stays in it, and it goes with its last change.
type block struct {
	first          int64  // the number of its first change
	size           int    // how many changes it has
	ids            []byte // idSize bytes for each of its changes; nil where only the rest was read
	oldest, newest int64  // when its changes happened, in milliseconds; of one that lies in an interval, both ends
	seen           times  // when they were seen
	loud           int    // changes that are not quiet
	kinds          set    // of those
	sum            *sum   // of all of them; nil: an older program began the block
}

// times are the first and the last of some, in milliseconds.
type times struct{ oldest, newest int64 }

// never is of none.
var never = times{math.MaxInt64, math.MinInt64}

func (t *times) add(at int64) { t.oldest, t.newest = min(t.oldest, at), max(t.newest, at) }

// sum has what changes have in common, by their numbers.
type sum struct {
	ops                         uint64 // a bit for each operation
	kinds, namespaces, managers set
}

// set has numbers from 1 on, as uvarints. There are few.
type set []byte

func (s *set) add(n int64) {
	if n > 0 && !s.has(map[int64]bool{n: true}) {
		*s = binary.AppendUvarint(*s, uint64(n))
	}
}

// has tells whether one of the numbers is in the set. What cannot be read may be.
func (s set) has(of map[int64]bool) bool {
	for len(s) > 0 {
		k, n := binary.Uvarint(s)
		if n <= 0 || of[int64(k)] {
			return true
		}
		s = s[n:]
	}
	return false
}

// next is the number that the next change gets.
func (b *block) next() int64 { return b.first + int64(b.size) }

func (b *block) clone() block {
	c := *b
	c.ids, c.kinds = bytes.Clone(b.ids), bytes.Clone(b.kinds)
	if b.sum != nil {
		c.sum = &sum{b.sum.ops, bytes.Clone(b.sum.kinds), bytes.Clone(b.sum.namespaces), bytes.Clone(b.sum.managers)}
	}
	return c
}

func (b *block) full() bool { return b.size >= blockSize }

// noted is what a block notes of a change, in the file's numbers.
type noted struct {
	id                       string
	time, lag                int64 // it was seen so long after it happened
	from                     int64 // it happened between then and time
	kind, namespace, manager int64
	op                       int
	quiet                    bool
}

// add notes a change, which becomes that with the number next.
func (b *block) add(c noted) {
	if b.size == 0 {
		b.oldest, b.newest = c.from, c.time
	}
	b.size++
	b.oldest, b.newest = min(b.oldest, c.from), max(b.newest, c.time)
	b.seen.add(c.time + c.lag)
	low, _ := idRange(c.id)
	var bits [8]byte
	binary.BigEndian.PutUint64(bits[:], low)
	b.ids = append(b.ids, bits[8-idSize:]...)
	if !c.quiet {
		b.loud++
		b.kinds.add(c.kind)
	}
	if b.sum != nil {
		b.sum.ops |= 1 << c.op
		b.sum.kinds.add(c.kind)
		b.sum.namespaces.add(c.namespace)
		b.sum.managers.add(c.manager)
	}
}

// bytes is the sum as it is in the file: the bits of the operations, and the three sets, each with its
// length before it.
func (s *sum) bytes() []byte {
	if s == nil {
		return nil
	}
	b := binary.AppendUvarint(nil, s.ops)
	for _, set := range []set{s.kinds, s.namespaces, s.managers} {
		b = append(binary.AppendUvarint(b, uint64(len(set))), set...)
	}
	return b
}

// sumOf undoes bytes; what is none is nil, and then says nothing.
func sumOf(b []byte) *sum {
	ops, n := binary.Uvarint(b)
	if n <= 0 {
		return nil
	}
	s := &sum{ops: ops}
	b = b[n:]
	for _, to := range []*set{&s.kinds, &s.namespaces, &s.managers} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil
		}
		*to, b = set(b[n:n+int(size)]), b[n+int(size):]
	}
	return s
}

var idAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// idRange returns what a block may keep of ids that begin so; false if there is no such id.
func idRange(prefix string) (low, high uint64) {
	prefix = prefix[:min(len(prefix), idChars)]
	var b [8]byte
	for i, fill := range []byte{'a', '7'} {
		text := append([]byte(prefix), bytes.Repeat([]byte{fill}, idChars-len(prefix))...)
		if n, err := idAlphabet.Decode(b[8-idSize:], text); err != nil || n != idSize {
			return 1, 0
		}
		if i == 0 {
			low = binary.BigEndian.Uint64(b[:])
		}
	}
	return low, binary.BigEndian.Uint64(b[:])
}

// find calls found with the numbers of changes whose ids may lie in the range.
func (b *block) find(low, high uint64, found func(seq int64)) {
	var bits [8]byte
	for i := 0; i+idSize <= len(b.ids); i += idSize {
		copy(bits[8-idSize:], b.ids[i:])
		if v := binary.BigEndian.Uint64(bits[:]); v >= low && v <= high {
			found(b.first + int64(i/idSize))
		}
	}
}

func (db *db) saveBlock(b *block) error {
	return db.exec("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		b.first, b.ids, b.oldest, b.newest, b.loud, append([]byte{}, b.kinds...), b.sum.bytes(), b.seen.oldest, b.seen.newest)
}

// blocks is a query of blocks, with their ids or, for who only looks which changes to read, without.
func (db *db) blocks(ids bool) string {
	what, sum, seen := "length(ids)", "sum", "seen_oldest, seen_newest"
	if ids {
		what = "ids"
	}
	if db.format < 2 {
		sum = "NULL"
	}
	if db.format < 3 {
		seen = "NULL, NULL"
	}
	return "SELECT first, " + what + ", oldest, newest, loud, kinds, " + sum + ", " + seen + " FROM blocks "
}

func columnBlock(s *sqlite3.Stmt) block {
	b := block{
		first: s.ColumnInt64(0), oldest: s.ColumnInt64(2), newest: s.ColumnInt64(3), loud: s.ColumnInt(4),
		kinds: blob(s, 5), sum: sumOf(blob(s, 6)), seen: never,
	}
	if s.ColumnType(7) != sqlite3.NULL {
		b.seen = times{s.ColumnInt64(7), s.ColumnInt64(8)}
	}
	if s.ColumnType(1) == sqlite3.INTEGER {
		b.size = s.ColumnInt(1) / idSize
	} else {
		b.ids = blob(s, 1)
		b.size = len(b.ids) / idSize
	}
	return b
}

// tail returns the newest block; before the first change it is empty.
func (db *db) tail() (block, error) {
	b := newBlock(1)
	err := db.query(db.blocks(true)+"ORDER BY first DESC LIMIT 1", nil, func(s *sqlite3.Stmt) error {
		b = columnBlock(s)
		return nil
	})
	if err != nil {
		return b, err
	}
	newest, err := db.integer("SELECT max(seq) FROM changes")
	if err == nil && newest >= b.next() {
		err = damaged(db.path, "blocks", "change %d is in no block", newest)
	}
	return b, err
}

func newBlock(first int64) block { return block{first: first, seen: never, sum: &sum{}} }
