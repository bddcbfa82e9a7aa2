package journal

import (
	"bytes"
	"encoding/base32"
	"encoding/binary"

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
// each commit that adds to it; what retention removes stays in it.
type block struct {
	first          int64  // the number of its first change
	ids            []byte // idSize bytes for each of its changes
	oldest, newest int64  // the times of its changes, in milliseconds
	loud           int    // changes that are not quiet
	kinds          []byte // of those: numbers, as uvarints
}

// next is the number that the next change gets.
func (b *block) next() int64 { return b.first + int64(len(b.ids)/idSize) }

func (b *block) clone() block {
	c := *b
	c.ids, c.kinds = bytes.Clone(b.ids), bytes.Clone(b.kinds)
	return c
}

func (b *block) full() bool { return len(b.ids) >= blockSize*idSize }

// add notes a change, which becomes that with the number next.
func (b *block) add(id string, time, kind int64, quiet bool) {
	if len(b.ids) == 0 {
		b.oldest, b.newest = time, time
	}
	b.oldest, b.newest = min(b.oldest, time), max(b.newest, time)
	low, _ := idRange(id)
	var bits [8]byte
	binary.BigEndian.PutUint64(bits[:], low)
	b.ids = append(b.ids, bits[8-idSize:]...)
	if !quiet {
		b.loud++
		if !b.hasKind(map[int64]bool{kind: true}) {
			b.kinds = binary.AppendUvarint(b.kinds, uint64(kind))
		}
	}
}

// hasKind tells whether a change that is not quiet is of one of the kinds.
func (b *block) hasKind(kinds map[int64]bool) bool {
	for rest := b.kinds; len(rest) > 0; {
		k, n := binary.Uvarint(rest)
		if n <= 0 || kinds[int64(k)] {
			return true // what cannot be read is looked into
		}
		rest = rest[n:]
	}
	return false
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
	return db.exec("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?, ?)", b.first, b.ids, b.oldest, b.newest, b.loud, append([]byte{}, b.kinds...))
}

func columnBlock(s *sqlite3.Stmt) block {
	return block{s.ColumnInt64(0), blob(s, 1), s.ColumnInt64(2), s.ColumnInt64(3), s.ColumnInt(4), blob(s, 5)}
}

// tail returns the newest block; before the first change it is empty.
func (db *db) tail() (block, error) {
	b := block{first: 1}
	err := db.query("SELECT * FROM blocks ORDER BY first DESC LIMIT 1", nil, func(s *sqlite3.Stmt) error {
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
