package journal

import (
	"bytes"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

const (
	// blockSize is how many changes share a block: few enough to scan at once.
	blockSize = 256
	// idSize is how many bytes of each id a block keeps: eight characters. One in 2^40 other ids has the same prefix, so
	// a match is compared in full.
	idSize  = 5
	idChars = 8
)

// block summarizes consecutive changes, so that queries skip whole blocks and find an id without an index, which would
// touch a random page for each change. It is written once per commit that adds to it. Removed changes stay in it; it
// goes with its last change.
type block struct {
	first          int64  // sequence number of its first change
	size           int    // number of changes
	ids            []byte // idSize bytes per change; nil if not read
	oldest, newest int64  // when its changes happened, in milliseconds; both ends of an interval count
	seen           times  // when they were seen
	// reached is the latest time in this block and all before it: happened or seen, whichever is later. It never falls from
	// block to block, although clocks jump, so that a time can be found by bisecting; see bounded.
	reached int64
	listed  int     // number of listed (not quiet) changes
	kinds   set     // kinds of the listed changes
	sum     sum     // of all changes
	counts  tallies // of the listed changes; nil if not read
}

// times is a span of milliseconds.
type times struct{ oldest, newest int64 }

// never is an empty span.
var never = times{math.MaxInt64, math.MinInt64}

func (t *times) add(at int64) { t.oldest, t.newest = min(t.oldest, at), max(t.newest, at) }

// sum holds the operations, severities, kinds, namespaces and managers of a block's changes, by number. They let a query for a
// rare manager, namespace or operation skip blocks. For a kind they matter only if quiet changes count, too: otherwise kinds does it.
// BenchmarkFirstPage with 100,000 changes on a busy machine: 1 to 4 ms for a first page, and 320 to 360 ms without sums.
// Indexes on kind and manager instead would make a heartbeat take 118 instead of 98 bytes.
type sum struct {
	ops, severities             uint64 // a bit for each
	kinds, namespaces, managers set
}

// set holds a few positive numbers as uvarints.
type set []byte

func (s *set) add(n int64) {
	if n > 0 && !s.has(map[int64]bool{n: true}) {
		*s = binary.AppendUvarint(*s, uint64(n))
	}
}

// has reports whether the set holds one of the numbers. An unreadable set may hold any.
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

// next returns the next change's sequence number.
func (b *block) next() int64 { return b.first + int64(b.size) }

func (b *block) clone() block {
	c := *b
	c.ids, c.kinds = bytes.Clone(b.ids), bytes.Clone(b.kinds)
	c.counts = slices.Clone(b.counts)
	c.sum = sum{b.sum.ops, b.sum.severities, bytes.Clone(b.sum.kinds), bytes.Clone(b.sum.namespaces), bytes.Clone(b.sum.managers)}
	return c
}

func (b *block) full() bool { return b.size >= blockSize }

// noted is what a block keeps of a change, by number.
type noted struct {
	id                       string
	time, lag                int64 // when it happened, and how much later it was seen
	from                     int64 // it happened between from and time
	kind, namespace, manager int64
	op, severity             int
	quiet                    bool
}

// add notes the change with sequence number next.
func (b *block) add(c noted) {
	if b.size == 0 {
		b.oldest, b.newest = c.from, c.time
	}
	b.size++
	b.oldest, b.newest = min(b.oldest, c.from), max(b.newest, c.time)
	b.seen.add(c.time + c.lag)
	b.reached = max(b.reached, b.newest, b.seen.newest)
	low, _ := idRange(c.id)
	var bits [8]byte
	binary.BigEndian.PutUint64(bits[:], low)
	b.ids = append(b.ids, bits[8-idSize:]...)
	if !c.quiet {
		b.listed++
		b.kinds.add(c.kind)
		b.counts.add(c.time, c.kind, c.namespace, c.op, c.severity)
	}
	b.sum.ops |= 1 << c.op
	b.sum.severities |= 1 << c.severity
	b.sum.kinds.add(c.kind)
	b.sum.namespaces.add(c.namespace)
	b.sum.managers.add(c.manager)
}

// bytes encodes the sum for the file: the operations and the severities as bits, then the three sets, each after its length.
func (s *sum) bytes() []byte {
	b := binary.AppendUvarint(binary.AppendUvarint(nil, s.ops), s.severities)
	for _, set := range []set{s.kinds, s.namespaces, s.managers} {
		b = append(binary.AppendUvarint(b, uint64(len(set))), set...)
	}
	return b
}

// anySum matches everything.
var anySum = sum{math.MaxUint64, math.MaxUint64, set{0x80}, set{0x80}, set{0x80}}

// sumOf undoes bytes; it returns anySum for what bytes did not write.
func sumOf(b []byte) sum {
	var s sum
	for _, to := range []*uint64{&s.ops, &s.severities} {
		bits, n := binary.Uvarint(b)
		if n <= 0 {
			return anySum
		}
		*to, b = bits, b[n:]
	}
	for _, to := range []*set{&s.kinds, &s.namespaces, &s.managers} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return anySum
		}
		*to, b = set(b[n:n+int(size)]), b[n+int(size):]
	}
	return s
}

var idAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// idRange returns the range of the stored id prefixes that start with prefix; an empty range if no id does.
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

// find calls found with each change whose id may lie in the range.
func (b *block) find(low, high uint64, found func(seq int64)) {
	var bits [8]byte
	for i := 0; i+idSize <= len(b.ids); i += idSize {
		copy(bits[8-idSize:], b.ids[i:])
		if v := binary.BigEndian.Uint64(bits[:]); v >= low && v <= high {
			found(b.first + int64(i/idSize))
		}
	}
}

// saveBlock writes the three rows of a block. Queries scan the first, which is small; few read the ids and the counts.
func (db *db) saveBlock(b *block) error {
	return errors.Join(
		db.exec("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			b.first, b.size, b.listed, b.oldest, b.newest, b.seen.oldest, b.seen.newest, b.reached, append([]byte{}, b.kinds...), b.sum.bytes()),
		db.exec("INSERT OR REPLACE INTO block_ids VALUES (?, ?)", b.first, b.ids),
		db.saveCounts(b.first, b.counts))
}

// selectBlocks is the query of blocks, without ids and counts.
const selectBlocks = "SELECT first, size, listed, oldest, newest, seen_oldest, seen_newest, reached, kinds, sum FROM blocks "

func columnBlock(s *sqlite3.Stmt) block {
	return block{
		first: s.ColumnInt64(0), size: s.ColumnInt(1), listed: s.ColumnInt(2), oldest: s.ColumnInt64(3), newest: s.ColumnInt64(4),
		seen: times{s.ColumnInt64(5), s.ColumnInt64(6)}, reached: s.ColumnInt64(7), kinds: blob(s, 8), sum: sumOf(blob(s, 9)),
	}
}

// columnIDs reads a row of block_ids.
func columnIDs(s *sqlite3.Stmt) block { return block{first: s.ColumnInt64(0), ids: blob(s, 1)} }

// readIDs reads the ids of a block.
func (db *db) readIDs(b *block) error {
	return db.query("SELECT first, ids FROM block_ids WHERE first = ?", []any{b.first}, func(s *sqlite3.Stmt) error {
		b.ids = columnIDs(s).ids
		return nil
	})
}

// tail returns the newest block, empty before the first change.
func (db *db) tail() (block, error) {
	b := newBlock(1, math.MinInt64)
	err := db.query(selectBlocks+"ORDER BY first DESC LIMIT 1", nil, func(s *sqlite3.Stmt) error {
		b = columnBlock(s)
		return nil
	})
	if err == nil {
		err = db.readIDs(&b)
	}
	if err != nil {
		return b, err
	}
	if b.counts, err = db.counts(b.first); err != nil {
		return b, err
	}
	newest, err := db.integer("SELECT max(seq) FROM changes")
	switch {
	case err != nil:
	case newest >= b.next():
		err = damaged(db.path, "blocks", "change %d is in no block", newest)
	case len(b.ids) != b.size*idSize:
		err = damaged(db.path, "blocks", "%d bytes of ids of %d changes in block %d", len(b.ids), b.size, b.first)
	}
	return b, err
}

// newBlock returns an empty block, given what the one before it has reached.
func newBlock(first, reached int64) block { return block{first: first, seen: never, reached: reached} }

// bounded returns the first and the last change that a query of times needs to look at; the times of blocks and changes
// decide about those between. It reads some 20 blocks, and those behind the last change that happened before until: these
// have their own times only, as a change that is seen late may have happened long ago. 0 is no limit.
func (db *db) bounded(since, until int64) (low, high int64, err error) {
	low, high = 1, math.MaxInt64
	if since != 0 {
		if low, err = db.reaching(since); err != nil {
			return 0, 0, err
		}
	}
	if until != 0 {
		last, err := db.integer("SELECT first FROM blocks WHERE oldest < ? ORDER BY first DESC LIMIT 1", until)
		if err != nil {
			return 0, 0, err
		}
		high = last + blockSize - 1
	}
	return low, high, nil
}

// reached returns what the blocks before a number have reached.
func (db *db) reached(first int64) (at int64, err error) {
	return db.integer("SELECT ifnull((SELECT reached FROM blocks WHERE first < ? ORDER BY first DESC LIMIT 1), ?)", first, never.newest)
}

// reaching returns the start of the first block that reaches a time; no change before it happened, or was seen, at that time
// or later. It returns the next number if none does.
func (db *db) reaching(at int64) (low int64, err error) {
	high, err := db.integer("SELECT first + size FROM blocks ORDER BY first DESC LIMIT 1")
	for low = 1; low < high && err == nil; {
		mid := low + (high-low)/2
		first, next, until := int64(0), int64(0), never.newest // of the block that has mid, or the one before if that was removed
		err = db.query("SELECT first, first + size, reached FROM blocks WHERE first <= ? ORDER BY first DESC LIMIT 1", []any{mid}, func(s *sqlite3.Stmt) error {
			first, next, until = s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2)
			return nil
		})
		if until < at {
			low = max(mid+1, next)
		} else {
			high = first
		}
	}
	return low, err
}
