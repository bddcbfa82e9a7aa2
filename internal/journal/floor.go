package journal

import (
	"context"
	"math"

	"github.com/ncruces/go-sqlite3"
)

const (
	// floorShare: 1/floorShare of Retention.Size is kept for the newest changes, however much the states take. A share
	// of the limit rather than a time, so that a flood of changes cannot make the file grow without bounds.
	floorShare = 4
	// rowSize is about what a change takes in the file besides its contents: 80 bytes, measured for heartbeats of
	// nodes.
	rowSize = 80
)

// floor returns the oldest change that a size limit never removes: from it on, the listed changes take a quarter of
// the limit. It is 0 if all of them take less, and the next number if the limit is tiny.
func (j *Journal) floor(ctx context.Context, limit int64) (seq int64, err error) {
	seq = math.MaxInt64
	budget := limit / floorShare
	for done := false; !done; { // a few blocks, some milliseconds, per lock
		err := j.do(ctx, "read", func() (err error) {
			seq = min(seq, j.tail.next())
			for i := 0; i < 16 && !done && err == nil; i++ {
				done, err = j.lower(&seq, &budget)
			}
			if done {
				j.forgetBelow(seq)
			}
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return seq, nil
}

// lower moves the floor down to the start of the block before it, or as far as the budget reaches.
func (j *Journal) lower(seq, budget *int64) (done bool, err error) {
	if *budget <= 0 {
		return true, nil
	}
	first, err := j.db.integer("SELECT max(first) FROM blocks WHERE first < ?", *seq)
	if err != nil || first == 0 {
		*seq = 0
		return true, err
	}
	if size, ok := j.listed[first]; ok && size < *budget {
		*seq, *budget = first, *budget-size
		return false, nil
	}
	size := int64(0)
	err = j.db.query("SELECT c.seq, length(before), length(after) FROM changes c LEFT JOIN contents t ON t.seq = c.seq WHERE c.seq >= ? AND c.seq < ? AND NOT quiet ORDER BY c.seq DESC",
		[]any{first, *seq}, func(s *sqlite3.Stmt) error {
			size += rowSize + s.ColumnInt64(1) + s.ColumnInt64(2)
			if size >= *budget {
				*seq, done = s.ColumnInt64(0), true
				return errDone
			}
			return nil
		})
	if err != nil || done {
		return done, err
	}
	if first != j.tail.first { // a full block: its size only shrinks
		if j.listed == nil {
			j.listed = map[int64]int64{}
		}
		j.listed[first] = size
	}
	*seq, *budget = first, *budget-size
	return false, nil
}

// forgetBelow drops the sizes of blocks below the floor, which only rises.
func (j *Journal) forgetBelow(floor int64) {
	for first := range j.listed {
		if first+blockSize <= floor {
			delete(j.listed, first)
		}
	}
}
